package approver_test

import (
	"errors"
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// The verdict about every request of a cluster, beside an inventory.
func TestGoldenRequests(t *testing.T) {
	patchtest.Golden(t, "testdata/requests", func(t *testing.T, input fs.FS) map[string]string {
		tree := opened(t, input)
		in := approver.Inputs{Nodes: sets.New[string](), Approvals: map[string]int{}, Now: now}
		for _, node := range listed(t, tree, "", "nodes") {
			in.Nodes.Insert(node.GetName())
		}
		text, err := fs.ReadFile(input, "nodes.yaml")
		if err == nil {
			in.Inventory, err = inventory.Load(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		verdicts, approvals := map[string]approver.Verdict{}, map[string]int{}
		requests := listed(t, tree, certificatesv1.GroupName, "certificatesigningrequests")
		for i := range requests {
			approvals[approver.ApprovedFor(decoded[certificatesv1.CertificateSigningRequest](t, &requests[i]))]++
		}
		for i := range requests {
			request, err := approver.Parse(decoded[certificatesv1.CertificateSigningRequest](t, &requests[i]))
			if err != nil {
				verdicts[requests[i].GetName()] = approver.Unreadable(err)
				continue
			}
			in.Request, in.Approvals = request, approvals
			verdicts[request.Name] = approver.Decide(in)
		}
		return map[string]string{"want.yaml": marshalled(t, verdicts)}
	})
}

// wanted is what a golden file says about the next write to the stock approver.
type wanted struct {
	Action approver.Action `json:"action,omitempty"`
	Apply  any             `json:"apply,omitempty"`
	Create bool            `json:"create,omitempty"`
	Text   *string         `json:"text,omitempty"`
	HandTo string          `json:"handTo,omitempty"`
	// Result is what is said meanwhile; Observed, where there is nothing to write or to say, how the patch stands.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
}

func TestGoldenPatch(t *testing.T) {
	patchtest.Golden(t, "testdata/patch", func(t *testing.T, input fs.FS) map[string]string {
		tree := opened(t, input)
		in := approver.PatchInputs{Machines: approver.Absent}
		if infrastructure := got[unstructured.Unstructured](t, tree, configv1.GroupName, "infrastructures", "", "cluster"); infrastructure != nil {
			cluster, err := topology.FromUnstructured(infrastructure)
			if err != nil {
				t.Fatal(err)
			}
			in.Cluster = &cluster
		}
		in.ClusterVersion = got[configv1.ClusterVersion](t, tree, configv1.GroupName, "clusterversions", "", approver.ClusterVersionName)
		in.Deployment = got[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", approver.Namespace, approver.DeploymentName)
		in.ConfigMap = got[corev1.ConfigMap](t, tree, "", "configmaps", approver.Namespace, approver.ConfigMapName)
		if machines, err := tree.List(schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}, "openshift-machine-api"); err != nil {
			t.Fatal(err)
		} else if len(machines) > 0 {
			in.Machines = approver.Present
		}
		files := map[string]string{}
		for _, mode := range approver.Modes() {
			in.Mode = mode
			d := approver.Desired(in)
			w := wanted{Action: d.Action, Create: d.Create, Text: d.Text, HandTo: d.HandTo}
			switch {
			case d.ConfigMap != nil:
				w.Apply = d.ConfigMap
			case d.Deployment != nil:
				w.Apply = d.Deployment
			case d.ClusterVersion != nil:
				w.Apply = d.ClusterVersion
			}
			if d.Result != nil {
				w.Result = d.Result.String()
			} else {
				w.Observed = approver.Observe(in).String()
			}
			files["want-"+string(mode)+".yaml"] = marshalled(t, w)
		}
		return files
	})
}

func opened(t *testing.T, input fs.FS) *mustgather.Tree {
	t.Helper()
	tree, err := mustgather.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func listed(t *testing.T, tree *mustgather.Tree, group, resource string) []unstructured.Unstructured {
	t.Helper()
	list, err := tree.List(schema.GroupResource{Group: group, Resource: resource}, "")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func got[T any](t *testing.T, tree *mustgather.Tree, group, resource, namespace, name string) *T {
	t.Helper()
	object, err := tree.Get(schema.GroupResource{Group: group, Resource: resource}, namespace, name)
	if errors.Is(err, mustgather.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded[T](t, object)
}

func decoded[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if u, ok := any(typed).(*unstructured.Unstructured); ok {
		u.Object = object.Object
		return typed
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

func marshalled(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
