// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("approver-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{approver.Namespace}, Fields: []string{
			approver.FieldReplicas, fmt.Sprintf(".spec.template.metadata.annotations[%q]", approver.EditAnnotation), admission.ReplacedField(approver.Name),
		}},
		admission.Writable{Resource: "configmaps", Namespaces: []string{approver.Namespace},
			Fields: []string{fmt.Sprintf(".data[%q]", approver.ConfigKey), admission.Annotation(approver.EditAnnotation)}},
		admission.Overrides([]configv1.ComponentOverride{approver.Override()}),
		admission.Conditions("config.openshift.io", "clusteroperators", approver.ConditionPrefix),
	))
}
