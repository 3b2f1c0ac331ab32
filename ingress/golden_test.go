package ingress_test

import (
	"errors"
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// wanted is what a golden file says about one decision, by --placement.
type wanted struct {
	// Apply is the intent as it is sent, Release and Leave are what becomes of it otherwise.
	Apply   any              `json:"apply,omitempty"`
	Release bool             `json:"release,omitempty"`
	Leave   []patch.Replaced `json:"leave,omitempty"`
	// Result is what is reported before anything is sent; Observed, with an intent, what is reported once it stands.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
}

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		tree, err := mustgather.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		var in ingress.Inputs
		infrastructure, err := tree.Get(schema.GroupResource{Group: configv1.GroupName, Resource: "infrastructures"}, "", ingress.ConfigName)
		switch {
		case err == nil:
			cluster, err := topology.FromUnstructured(infrastructure)
			if err != nil {
				t.Fatal(err)
			}
			in.Cluster = &cluster
		case !errors.Is(err, mustgather.ErrNotFound):
			t.Fatal(err)
		}
		in.Ingress = get[configv1.Ingress](t, tree, configv1.GroupName, "ingresses", "", ingress.ConfigName)
		in.IngressController = get[operatorv1.IngressController](t, tree, operatorv1.GroupName, "ingresscontrollers",
			ingress.IngressControllerNamespace, ingress.IngressControllerName)
		in.Router = get[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", ingress.RouterNamespace, ingress.RouterName)

		want := map[ingress.PlacementSource]wanted{}
		for _, source := range []ingress.PlacementSource{ingress.PlacementFromTopology, ingress.PlacementFromDefaultPlacement} {
			in.Placement = source
			decision := ingress.Decide(in)
			w := wanted{Release: decision.Release, Leave: decision.Leave}
			if decision.Intent != nil {
				w.Apply, w.Observed = decision.Intent, ingress.Observe(in).String()
			}
			if decision.Result != nil {
				w.Result = decision.Result.String()
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

func get[T any](t *testing.T, tree *mustgather.Tree, group, resource, namespace, name string) *T {
	t.Helper()
	var object *unstructured.Unstructured
	object, err := tree.Get(schema.GroupResource{Group: group, Resource: resource}, namespace, name)
	if errors.Is(err, mustgather.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
