// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
	"github.com/solonode/sno/patch/operand"
)

type wanted struct {
	Apply   any      `json:"apply,omitempty"`
	Unset   []string `json:"unset,omitempty"`
	Release bool     `json:"release,omitempty"`
	Result  string   `json:"result,omitempty"`
}

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := decision.Inputs{
			Cluster:           golden.Topology(t, input),
			ClusterVersion:    golden.Object[configv1.ClusterVersion](t, input, "clusterversions.config.openshift.io", "", "version"),
			Authentication:    golden.Object[operatorv1.Authentication](t, input, "authentications.operator.openshift.io", "", auth.ConfigName),
			OAuthServer:       golden.Object[appsv1.Deployment](t, input, "deployments.apps", auth.OAuthServerNamespace, auth.OAuthServerName),
			OAuthAPIServer:    golden.Object[appsv1.Deployment](t, input, "deployments.apps", auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName),
			ControlPlaneNodes: golden.Objects[corev1.Node](t, input, "nodes", ""),
		}
		// The override by --override, and the Deployments with --force-conflicts, if the decision differs.
		want := map[string]map[string]wanted{"override": {}, "oauth-openshift": {}, "oauth-apiserver": {}}
		put := func(object, first, variant string, step patch.Step) {
			if w := wantedOf(step); fixture.Text(t, w) != fixture.Text(t, want[object][first]) {
				want[object][variant] = w
			}
		}
		for _, policy := range []decision.OverridePolicy{decision.OverrideAuto, decision.OverrideAlways, decision.OverrideNever} {
			in.Override = policy
			put("override", "auto", string(policy), decision.Decide(in).Override)
		}
		for _, variant := range []string{"unforced", "forced"} {
			in.ForceConflicts = variant == "forced"
			decided := decision.Decide(in)
			put("oauth-openshift", "unforced", variant, decided.OAuthServer)
			put("oauth-apiserver", "unforced", variant, decided.OAuthAPIServer)
		}
		out, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func wantedOf(step patch.Step) wanted {
	w := wanted{Unset: step.Unset, Release: step.Release, Result: step.Result.String()}
	if step.Intent != nil {
		w.Apply = step.Intent
	}
	return w
}

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("auth-controller",
		admission.Writable{Group: "apps", Resource: "deployments", Namespaces: []string{auth.OAuthServerNamespace, auth.OAuthAPIServerNamespace},
			Fields: append(operand.Fields(), admission.ReplacedField(auth.Name))},
		admission.Writable{Group: "operator.openshift.io", Resource: "authentications", Fields: []string{decision.FieldOverride}},
		admission.Conditions("operator.openshift.io", "authentications", decision.ConditionPrefix),
	))
}
