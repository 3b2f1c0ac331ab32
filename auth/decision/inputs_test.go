// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/auth/internal/fixture"
)

func TestValidate(t *testing.T) {
	renamed := func(d *appsv1.Deployment) { d.Name = "other" }
	moved := func(d *appsv1.Deployment) { d.Namespace = "other" }
	for name, test := range map[string]struct {
		in      decision.Inputs
		message string
	}{
		"no objects":             {in: decision.Inputs{}},
		"all objects":            {in: decision.Inputs{OAuthServer: fixture.Server(), OAuthAPIServer: fixture.APIServer(), Override: decision.OverrideAuto}},
		"an Authentication":      {in: overrideInputs("")},
		"another Authentication": {overrideInputs("", func(a *operatorv1.Authentication) { a.Name = "second" }), `"second"`},
		"another server":         {decision.Inputs{OAuthServer: fixture.Server(renamed)}, "openshift-authentication/other"},
		"server elsewhere":       {decision.Inputs{OAuthServer: fixture.Server(moved)}, "other/oauth-openshift"},
		"another API server":     {decision.Inputs{OAuthAPIServer: fixture.APIServer(renamed)}, "openshift-oauth-apiserver/other"},
		"API server elsewhere":   {decision.Inputs{OAuthAPIServer: fixture.APIServer(moved)}, "other/apiserver"},
		"swapped":                {decision.Inputs{OAuthServer: fixture.APIServer()}, "is not Deployment openshift-authentication/oauth-openshift"},
		"unknown policy":         {decision.Inputs{Override: "sometimes"}, `"sometimes"; want auto, always or never`},
	} {
		err := test.in.Validate()
		if (test.message == "") != (err == nil) || (err != nil && (!errors.Is(err, decision.ErrInputs) || !strings.Contains(err.Error(), test.message))) {
			t.Errorf("%s: %v, want %q", name, err, test.message)
		}
	}
}
