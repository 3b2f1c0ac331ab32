// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
)

// Type is the condition that the Operator Lifecycle Manager reads.
const Type = "Upgradeable"

// The reasons of the condition.
const (
	ReasonAsExpected      = "AsExpected"
	ReasonOverrideClaimed = "OverrideClaimed"
)

// Decide returns the condition, without a time, for the ClusterVersion, which may be nil. It is False while an entry in
// spec.overrides with unmanaged: true has a field owner of a module. Entries of other clients do not count: they
// outlive the operator.
func Decide(version *configv1.ClusterVersion) (metav1.Condition, error) {
	claims, err := claims(version)
	if err != nil {
		return metav1.Condition{}, err
	}
	if len(claims) == 0 {
		return metav1.Condition{
			Type: Type, Status: metav1.ConditionTrue, Reason: ReasonAsExpected, Message: "No module has an entry in ClusterVersion.spec.overrides",
		}, nil
	}
	return metav1.Condition{
		Type: Type, Status: metav1.ConditionFalse, Reason: ReasonOverrideClaimed, Message: "ClusterVersion" + overrides.Field + " has " +
			strings.Join(claims, ", ") + "; before an upgrade opt out of the module: docs/undo.md#before-an-upgrade",
	}, nil
}

// claims returns a sorted text for each entry of a module.
func claims(version *configv1.ClusterVersion) ([]string, error) {
	if version == nil {
		return nil, nil
	}
	var claims []string
	for _, entry := range version.Spec.Overrides {
		if !entry.Unmanaged {
			continue
		}
		managers, err := ownership.ManagersAt(version, fieldpath.MakePathOrDie("spec", "overrides", fieldpath.KeyByFields(
			"group", entry.Group, "kind", entry.Kind, "name", entry.Name, "namespace", entry.Namespace)))
		if err != nil {
			return nil, fmt.Errorf("reading the owners of %s: %w", overrides.Field, err)
		}
		var modules []string
		for _, manager := range managers {
			if module, ours := strings.CutPrefix(manager, patch.FieldOwner("")); ours {
				modules = append(modules, module)
			}
		}
		if len(modules) > 0 {
			claims = append(claims, fmt.Sprintf("%s %s/%s (module %s)", entry.Kind, entry.Namespace, entry.Name, strings.Join(modules, ", ")))
		}
	}
	slices.Sort(claims)
	return claims, nil
}
