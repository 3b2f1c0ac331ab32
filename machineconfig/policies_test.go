// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("machineconfig-controller",
		admission.Writable{Resource: "nodes", Fields: []string{
			".spec.unschedulable", admission.ReplacedField(machineconfig.Name),
			admission.Annotation(machineconfig.TopologyAnnotation), admission.Annotation(machineconfig.LastAppliedDrainAnnotation),
		}},
		admission.Conditions("operator.openshift.io", "machineconfigurations", machineconfig.ConditionPrefix),
	))
}
