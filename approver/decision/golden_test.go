// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("approver-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{decision.Namespace}, Fields: []string{
			decision.FieldReplicas, fmt.Sprintf(".spec.template.metadata.annotations[%q]", decision.EditAnnotation), admission.ReplacedField(approver.Name),
		}},
		admission.Writable{Resource: "configmaps", Namespaces: []string{decision.Namespace},
			Fields: []string{fmt.Sprintf(".data[%q]", decision.ConfigKey), admission.Annotation(decision.EditAnnotation)}},
		admission.Overrides([]configv1.ComponentOverride{decision.Override()}),
		admission.Conditions("config.openshift.io", "clusteroperators", decision.ConditionPrefix),
	))
}
