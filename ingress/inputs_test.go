package ingress_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

func TestParsePlacementSource(t *testing.T) {
	for text, want := range map[string]ingress.PlacementSource{
		"":                 ingress.PlacementFromTopology,
		"topology":         ingress.PlacementFromTopology,
		"defaultPlacement": ingress.PlacementFromDefaultPlacement,
	} {
		if got, err := ingress.ParsePlacementSource(text); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"Topology", "defaultplacement", "both", " topology"} {
		got, err := ingress.ParsePlacementSource(text)
		if !errors.Is(err, ingress.ErrPlacement) || got != "" {
			t.Errorf("%q: %q, %v; want %v", text, got, err, ingress.ErrPlacement)
			continue
		}
		for _, part := range []string{text, "topology", "defaultPlacement"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: the error does not say %q: %v", text, part, err)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	named := func(namespace, name string) *operatorv1.IngressController {
		return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, test := range map[string]struct {
		in   ingress.Inputs
		want error
		says string
	}{
		"nothing at all":              {in: ingress.Inputs{}},
		"all there":                   {in: withDefaultPlacement(inputs(sr, sr), "")},
		"a Cluster that nobody read":  {in: ingress.Inputs{Cluster: &topology.Cluster{}}, want: ingress.ErrNoTopology, says: "FromInfrastructure"},
		"unknown placement":           {in: ingress.Inputs{Placement: "both"}, want: ingress.ErrPlacement, says: "both"},
		"another IngressController":   {in: ingress.Inputs{IngressController: named("openshift-ingress-operator", "internal")}, want: ingress.ErrInputs, says: "openshift-ingress-operator/internal"},
		"default in another place":    {in: ingress.Inputs{IngressController: named("elsewhere", "default")}, want: ingress.ErrInputs, says: "elsewhere/default"},
		"another cluster-wide config": {in: ingress.Inputs{Ingress: &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "second"}}}, want: ingress.ErrInputs, says: "second"},
	} {
		err := test.in.Validate()
		if !errors.Is(err, test.want) || (test.want != nil && !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want %v saying %q", name, err, test.want, test.says)
		}
	}
}
