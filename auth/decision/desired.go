// SPDX-License-Identifier: Apache-2.0

package decision

import (
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Decision has a step for each of the three objects. They are independent: a blocked one does not stop the others.
type Decision struct {
	Override                    patch.Step // of authentications.operator.openshift.io/cluster; apply it without force
	OAuthServer, OAuthAPIServer patch.Step
}

// Decide returns the next step for each object.
func Decide(in Inputs) Decision {
	return Decision{Override: in.override().decide(), OAuthServer: in.oauthServer().decide(), OAuthAPIServer: in.oauthAPIServer().decide()}
}

func (o override) decide() patch.Step {
	if result, policy := overrideChecks().Run(o); result != nil {
		return patch.Step{Result: result, Release: policy == patch.ReleaseFields && ownership.Owns(o.Authentication, FieldOwner)}
	}
	result := o.observe()
	return patch.Step{Result: &result, Intent: operatorv1ac.Authentication(auth.ConfigName).WithSpec(
		operatorv1ac.AuthenticationSpec().WithUnsupportedConfigOverrides(runtime.RawExtension{Raw: []byte(`{"` + auth.OverrideKey + `":true}`)}))}
}

func (o target) decide() patch.Step {
	result, policy := deploymentChecks().Run(o)
	if result == nil {
		return o.Step()
	}
	step := patch.Step{Result: result, Release: policy == patch.ReleaseFields && ownership.Owns(o.Live, FieldOwner)}
	if result.Reason == patch.ReasonFieldOwnedByOther {
		step.Result = o.RolloutStuckOr(result)
	}
	return step
}
