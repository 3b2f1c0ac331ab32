// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/auth/decision"
)

func TestValidate(t *testing.T) {
	renamed := func(d *appsv1.Deployment) { d.Name = "other" }
	moved := func(d *appsv1.Deployment) { d.Namespace = "other" }
	for name, test := range map[string]struct {
		in      decision.Inputs
		message string
	}{
		"no objects":             {in: decision.Inputs{}},
		"all objects":            {in: decision.Inputs{OAuthServer: server(), OAuthAPIServer: apiServer(), Override: decision.OverrideAuto}},
		"an Authentication":      {in: overrideInputs("")},
		"another Authentication": {overrideInputs("", func(a *operatorv1.Authentication) { a.Name = "second" }), `"second"`},
		"another server":         {decision.Inputs{OAuthServer: server(renamed)}, "openshift-authentication/other"},
		"server elsewhere":       {decision.Inputs{OAuthServer: server(moved)}, "other/oauth-openshift"},
		"another API server":     {decision.Inputs{OAuthAPIServer: apiServer(renamed)}, "openshift-oauth-apiserver/other"},
		"API server elsewhere":   {decision.Inputs{OAuthAPIServer: apiServer(moved)}, "other/apiserver"},
		"swapped":                {decision.Inputs{OAuthServer: apiServer()}, "is not Deployment openshift-authentication/oauth-openshift"},
		"unknown policy":         {decision.Inputs{Override: "sometimes"}, `"sometimes"; want auto, always or never`},
	} {
		err := test.in.Validate()
		if (test.message == "") != (err == nil) || (err != nil && (!errors.Is(err, decision.ErrInputs) || !strings.Contains(err.Error(), test.message))) {
			t.Errorf("%s: %v, want %q", name, err, test.message)
		}
	}
}
