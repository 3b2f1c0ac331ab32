// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"testing"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("ingress-controller",
		admission.Writable{Group: "operator.openshift.io", Resource: "ingresscontrollers",
			Fields: []string{ingress.FieldReplicas, ingress.FieldNodePlacement, admission.ReplacedField(ingress.Name)}},
		admission.Conditions("operator.openshift.io", "ingresscontrollers", ingress.ConditionPrefix),
	))
}
