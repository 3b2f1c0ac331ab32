// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"testing"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
	"github.com/solonode/sno/patch/workload"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("auth-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{auth.OAuthServerNamespace, auth.OAuthAPIServerNamespace},
			Fields: append(workload.Fields(), admission.ReplacedField(auth.Name))},
		admission.Writable{Group: "operator.openshift.io", Resource: "authentications", Fields: []string{auth.FieldOverride}},
		admission.Conditions("operator.openshift.io", "authentications", auth.ConditionPrefix),
	))
}
