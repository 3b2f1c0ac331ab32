// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
	"github.com/solonode/sno/patch/workload"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("console-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{console.Namespace},
			Fields: append(workload.Fields(), admission.ReplacedField(console.Name))},
		admission.Overrides([]configv1.ComponentOverride{console.Override()}),
		admission.Conditions("operator.openshift.io", "consoles", console.ConditionPrefix),
	))
}
