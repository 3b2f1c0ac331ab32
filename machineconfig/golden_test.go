package machineconfig_test

import (
	"errors"
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// wanted is what a golden file says about one cluster.
type wanted struct {
	// Apply are the objects of the graceful shutdown as they are sent, Delete those that go.
	Apply    []any    `json:"apply,omitempty"`
	Delete   []string `json:"delete,omitempty"`
	Restarts bool     `json:"restarts,omitempty"`
	// Result is what is said before anything is sent; Observed, without it, how the graceful shutdown stands then.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
	// Waiting is what paused pools keep from their nodes.
	Waiting []string     `json:"waiting,omitempty"`
	Nodes   []wantedNode `json:"nodes,omitempty"`
}

// wantedNode is what there is to do about one node.
type wantedNode struct {
	Name string `json:"name"`
	// Drain is the answer with each policy.
	Drain map[string]string `json:"drain"`
	// Annotate is what is written beside a stock operator, Topology what is said of it.
	Annotate string `json:"annotate,omitempty"`
	Topology string `json:"topology,omitempty"`
}

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		d := machineconfig.Decide(in)
		w := wanted{Restarts: d.Restarts, Result: said(d.Result)}
		if d.MachineConfig.Intent != nil {
			w.Apply = append(w.Apply, d.MachineConfig.Intent)
		}
		if d.KubeletConfig.Intent != nil {
			w.Apply = append(w.Apply, d.KubeletConfig.Intent)
		}
		if d.MachineConfig.Delete {
			w.Delete = append(w.Delete, "MachineConfig")
		}
		if d.KubeletConfig.Delete {
			w.Delete = append(w.Delete, "KubeletConfig")
		}
		if d.Result == nil {
			w.Observed = machineconfig.Observe(in, d).String()
		}
		waiting, err := machineconfig.Maintenance(pointers(in.Pools), pointers(in.Nodes))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range waiting {
			w.Waiting = append(w.Waiting, each.String())
		}
		for i := range in.Nodes {
			w.Nodes = append(w.Nodes, aboutNode(in, &in.Nodes[i]))
		}
		out, err := yaml.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

func said(result *patch.Result) string {
	if result == nil {
		return ""
	}
	return result.String()
}

func aboutNode(in machineconfig.Inputs, node *corev1.Node) wantedNode {
	w := wantedNode{Name: node.Name, Drain: map[string]string{}}
	in.Node = node.Name
	for _, in.Policy = range machineconfig.DrainPolicies() {
		decision, err := machineconfig.DrainRequired(in)
		word := "no"
		if decision.Required {
			word = "yes"
		}
		w.Drain[string(in.Policy)] = word + " (" + decision.Reason + "): " + decision.Message
		if err != nil {
			w.Drain[string(in.Policy)] = err.Error()
		}
	}
	step := machineconfig.AnnotateTopology(in, node)
	w.Topology = said(step.Result)
	if step.Intent != nil {
		w.Annotate = step.Intent.Annotations[machineconfig.TopologyAnnotation]
	}
	return w
}

// gathered are the inputs that lie in the tree.
func gathered(t *testing.T, input fs.FS) machineconfig.Inputs {
	t.Helper()
	tree, err := mustgather.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	var in machineconfig.Inputs
	if infrastructure := get[unstructured.Unstructured](t, tree, configv1.GroupName, "infrastructures", "cluster"); infrastructure != nil {
		cluster, err := topology.FromUnstructured(infrastructure)
		if err != nil {
			t.Fatal(err)
		}
		in.Cluster = &cluster
	}
	in.MachineConfiguration = get[operatorv1.MachineConfiguration](t, tree, operatorv1.GroupName, "machineconfigurations", machineconfig.OperatorName)
	in.MachineConfig = get[mcfgv1.MachineConfig](t, tree, mcfgv1.GroupName, "machineconfigs", machineconfig.ShutdownMachineConfigName)
	in.Pools = list[mcfgv1.MachineConfigPool](t, tree, mcfgv1.GroupName, "machineconfigpools", "")
	in.KubeletConfigs = list[mcfgv1.KubeletConfig](t, tree, mcfgv1.GroupName, "kubeletconfigs", "")
	in.Nodes = list[corev1.Node](t, tree, "", "nodes", "")
	in.Pods, in.Budgets = []corev1.Pod{}, []policyv1.PodDisruptionBudget{}
	in.ReplicaSets, in.StatefulSets = []appsv1.ReplicaSet{}, []appsv1.StatefulSet{}
	namespaces, err := fs.ReadDir(input, "namespaces")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, namespace := range namespaces {
		in.Pods = append(in.Pods, list[corev1.Pod](t, tree, "", "pods", namespace.Name())...)
		in.Budgets = append(in.Budgets, list[policyv1.PodDisruptionBudget](t, tree, policyv1.GroupName, "poddisruptionbudgets", namespace.Name())...)
		in.ReplicaSets = append(in.ReplicaSets, list[appsv1.ReplicaSet](t, tree, appsv1.GroupName, "replicasets", namespace.Name())...)
		in.StatefulSets = append(in.StatefulSets, list[appsv1.StatefulSet](t, tree, appsv1.GroupName, "statefulsets", namespace.Name())...)
	}
	return in
}

func get[T any](t *testing.T, tree *mustgather.Tree, group, resource, name string) *T {
	t.Helper()
	object, err := tree.Get(schema.GroupResource{Group: group, Resource: resource}, "", name)
	if errors.Is(err, mustgather.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded[T](t, object)
}

func list[T any](t *testing.T, tree *mustgather.Tree, group, resource, namespace string) []T {
	t.Helper()
	objects, err := tree.List(schema.GroupResource{Group: group, Resource: resource}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	out := []T{}
	for i := range objects {
		out = append(out, *decoded[T](t, &objects[i]))
	}
	return out
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
