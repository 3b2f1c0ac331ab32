package etcdguard_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// wanted is what a golden file says about the next write.
type wanted struct {
	Action etcdguard.Action `json:"action,omitempty"`
	// Apply is the intent as it is sent, Create and Unset what goes with it.
	Apply       any      `json:"apply,omitempty"`
	Create      bool     `json:"create,omitempty"`
	Unset       []string `json:"unset,omitempty"`
	TakeFrom    []string `json:"takeFrom,omitempty"`
	HandTo      string   `json:"handTo,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// Result is what is said meanwhile; Observed, where there is nothing to write or to say, how the guard stands.
	Result      string `json:"result,omitempty"`
	Observed    string `json:"observed,omitempty"`
	Deprecation string `json:"deprecation,omitempty"`
}

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		d := etcdguard.Decide(in)
		w := wanted{
			Action: d.Action, Create: d.Create, Unset: d.Unset, TakeFrom: d.TakeFrom, HandTo: d.HandTo, Annotations: d.Annotations,
			Deprecation: d.Deprecation,
		}
		switch {
		case d.ClusterVersion != nil:
			w.Apply = d.ClusterVersion
		case d.Deployment != nil:
			w.Apply = d.Deployment
		case d.Budget != nil:
			w.Apply = d.Budget
		}
		if d.Result != nil {
			w.Result = d.Result.String()
		} else {
			w.Observed = etcdguard.Observe(in).String()
		}
		out, err := yaml.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"want.yaml": string(out)}
	})
}

// gathered are the inputs that lie in the tree.
func gathered(t *testing.T, input fs.FS) etcdguard.Inputs {
	t.Helper()
	tree, err := mustgather.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	in := etcdguard.Inputs{Members: gatheredMembers(t, input), Nodes: []corev1.Node{}}
	if infrastructure := get[unstructured.Unstructured](t, tree, configv1.GroupName, "infrastructures", "", "cluster"); infrastructure != nil {
		cluster, err := topology.FromUnstructured(infrastructure)
		if err != nil {
			t.Fatal(err)
		}
		in.Cluster = &cluster
	}
	in.ClusterVersion = get[configv1.ClusterVersion](t, tree, configv1.GroupName, "clusterversions", "", etcdguard.ClusterVersionName)
	in.Etcd = get[operatorv1.Etcd](t, tree, operatorv1.GroupName, "etcds", "", etcdguard.OperatorName)
	in.Deployment = get[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", etcdguard.Namespace, etcdguard.GuardName)
	in.Budget = get[policyv1.PodDisruptionBudget](t, tree, policyv1.GroupName, "poddisruptionbudgets", etcdguard.Namespace, etcdguard.GuardName)
	in.PodsBudget = get[policyv1.PodDisruptionBudget](t, tree, policyv1.GroupName, "poddisruptionbudgets", etcdguard.Namespace, etcdguard.PodsBudgetName)
	in.ClientSecret = presence(get[corev1.Secret](t, tree, "", "secrets", etcdguard.Namespace, etcdguard.ClientSecret) != nil)
	in.CABundle = presence(get[corev1.ConfigMap](t, tree, "", "configmaps", etcdguard.Namespace, etcdguard.CABundle) != nil)
	nodes, err := tree.List(schema.GroupResource{Resource: "nodes"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		in.Nodes = append(in.Nodes, *decoded[corev1.Node](t, &nodes[i]))
	}
	return in
}

func presence(there bool) etcdguard.Presence {
	if there {
		return etcdguard.Present
	}
	return etcdguard.Absent
}

// gatheredMembers reads what etcdctl said of the members and of their health; nil where nobody could ask it.
func gatheredMembers(t *testing.T, input fs.FS) []etcdguard.Member {
	t.Helper()
	var list struct {
		Members []struct {
			ID         uint64   `json:"ID"`
			ClientURLs []string `json:"clientURLs"`
			IsLearner  bool     `json:"isLearner"`
		} `json:"members"`
	}
	var health []struct {
		Endpoint string `json:"endpoint"`
		Health   bool   `json:"health"`
	}
	for file, into := range map[string]any{"etcd_info/member_list.json": &list, "etcd_info/endpoint_health.json": &health} {
		text, err := fs.ReadFile(input, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	members := []etcdguard.Member{}
	for _, m := range list.Members {
		healthy := false
		for _, h := range health {
			healthy = healthy || (h.Health && slices.Contains(m.ClientURLs, h.Endpoint))
		}
		members = append(members, etcdguard.Member{ID: m.ID, Healthy: healthy, Learner: m.IsLearner})
	}
	return members
}

func get[T any](t *testing.T, tree *mustgather.Tree, group, resource, namespace, name string) *T {
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
