// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

type wanted struct {
	Apply   any              `json:"apply,omitempty"`
	Release bool             `json:"release,omitempty"`
	Leave   []patch.Replaced `json:"leave,omitempty"`
	// Observed is the result after an intent was applied.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
}

func TestGolden(t *testing.T) {
	golden.Test(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		var in decision.Inputs
		in.Cluster = golden.Topology(t, input)
		in.Ingress = golden.Object[configv1.Ingress](t, input, "ingresses.config.openshift.io", "", ingress.ConfigName)
		in.IngressController = golden.Object[operatorv1.IngressController](t, input, "ingresscontrollers.operator.openshift.io",
			ingress.IngressControllerNamespace, ingress.IngressControllerName)
		in.Router = golden.Object[appsv1.Deployment](t, input, "deployments.apps", ingress.RouterNamespace, ingress.RouterName)

		want := map[ingress.PlacementSource]wanted{}
		for _, source := range []ingress.PlacementSource{ingress.PlacementFromTopology, ingress.PlacementFromDefaultPlacement} {
			in.Placement = source
			decided := decision.Decide(in).IngressController
			w := wanted{Release: decided.Release, Leave: decided.Leave}
			if decided.Intent != nil {
				w.Apply, w.Observed = decided.Intent, decision.Observe(in).String()
			}
			if decided.Result != nil {
				w.Result = decided.Result.String()
			}
			want[source] = w
		}
		out, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func TestPolicies(t *testing.T) {
	golden.File(t, "../config/admission/policies.yaml", admission.Policies("ingress-controller",
		admission.Writable{Group: "operator.openshift.io", Resource: "ingresscontrollers",
			Fields: []string{decision.FieldReplicas, decision.FieldNodePlacement, admission.ReplacedField(ingress.Name)}},
		admission.Conditions("operator.openshift.io", "ingresscontrollers", decision.ConditionPrefix),
	))
}
