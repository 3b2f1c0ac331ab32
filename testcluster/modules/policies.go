// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
)

// limit installs the policies of config/admission for the account of the tests.
func (c *Cluster) limit() {
	c.Helper()
	for _, u := range apiserver.Manifests(c, folder+"/config/admission", "policies.yaml") {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			u.SetName("sno-" + u.GetName())
			conditions, _, err := unstructured.NestedSlice(u.Object, "spec", "matchConditions")
			c.NoError(err)
			account := fmt.Sprintf("request.userInfo.username == %q", c.Suite.User()) // without the prefix of kustomize
			c.NoError(unstructured.SetNestedField(conditions[0].(map[string]any), account, "expression"))
			c.NoError(unstructured.SetNestedSlice(u.Object, conditions, "spec", "matchConditions"))
		}
		c.Server.Put(c, u)
	}
}

// Change is a merge patch of an object, or of its status.
type Change struct {
	Object      controller.Object
	Status      bool
	Patch       string
	Permissible bool // otherwise a policy must refuse it
}

// TestPolicies checks that the policies of config/admission refuse changes by the program's account. They must also
// refuse labels and annotations of others.
func (c *Cluster) TestPolicies(changes ...Change) {
	c.Helper()
	account, err := client.New(c.config(), client.Options{Scheme: c.Server.Scheme()})
	c.NoError(err)
	for _, change := range changes {
		all := []Change{change}
		if !change.Status && !change.Permissible {
			for _, of := range []string{"labels", "annotations"} {
				all = append(all, Change{Object: change.Object, Patch: fmt.Sprintf(`{"metadata":{%q:{"example.com/other":"x"}}}`, of)})
			}
		}
		for _, change := range all {
			c.Run(change.Object.Kind+" "+change.Patch, func(t *testing.T) {
				// The policies become effective some time after they were installed.
				apiserver.Eventually(t, "the answer of the policies", func() error { return change.try(t, account) })
			})
		}
	}
}

func (change Change) try(t *testing.T, account client.Client) error {
	t.Helper()
	var err error
	body := client.RawPatch(types.MergePatchType, []byte(change.Patch))
	if change.Status {
		err = account.Status().Patch(t.Context(), change.Object.Unstructured(), body, client.DryRunAll)
	} else {
		err = account.Patch(t.Context(), change.Object.Unstructured(), body, client.DryRunAll)
	}
	if refused := err != nil && strings.Contains(err.Error(), "denied request: The account may change only"); refused == change.Permissible || !refused && err != nil {
		return errors.Join(fmt.Errorf("permissible is %t", change.Permissible), err)
	}
	return nil
}
