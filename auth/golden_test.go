package auth_test

import (
	"errors"
	"io/fs"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/mustgather"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/topology"
)

// wanted is what a golden file says about the decision on one object.
type wanted struct {
	// Apply is the intent as it is sent; Unset and Release are what is taken off.
	Apply   any      `json:"apply,omitempty"`
	Unset   []string `json:"unset,omitempty"`
	Release bool     `json:"release,omitempty"`
	// Result is why nothing is applied; Observed, with an intent, what is reported of the object as it is.
	Result   string `json:"result,omitempty"`
	Observed string `json:"observed,omitempty"`
}

// golden is one file: the override by --override, the Deployments without and with --force-conflicts. A flag that makes no
// difference is left out.
type golden struct {
	Override       map[auth.OverridePolicy]wanted `json:"override"`
	OAuthServer    map[string]wanted              `json:"oauth-openshift"`
	OAuthAPIServer map[string]wanted              `json:"oauth-apiserver"`
}

const unforced = "unforced"

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		want := golden{map[auth.OverridePolicy]wanted{}, map[string]wanted{}, map[string]wanted{}}
		for _, policy := range []auth.OverridePolicy{auth.OverrideAuto, auth.OverrideAlways, auth.OverrideNever} {
			in.Override = policy
			d := auth.DecideOverride(in)
			w := wanted{Release: d.Release, Result: said(d.Result)}
			if d.Intent != nil {
				w.Apply, w.Observed = d.Intent, auth.ObserveOverride(in).String()
			}
			if policy == auth.OverrideAuto || text(t, w) != text(t, want.Override[auth.OverrideAuto]) {
				want.Override[policy] = w
			}
		}
		put := func(into map[string]wanted, name string, w wanted) {
			if text(t, w) != text(t, into[unforced]) {
				into[name] = w
			}
		}
		for _, name := range []string{unforced, "forced"} {
			in.ForceConflicts = name != unforced
			decision := auth.Decide(in)
			deployment := func(d auth.DeploymentDecision, observe func(auth.Inputs) patch.Result) wanted {
				w := wanted{Unset: d.Unset, Release: d.Release, Result: said(d.Result)}
				if d.Intent != nil {
					w.Apply, w.Observed = d.Intent, observe(in).String()
				}
				return w
			}
			put(want.OAuthServer, name, deployment(decision.OAuthServer, auth.ObserveOAuthServer))
			put(want.OAuthAPIServer, name, deployment(decision.OAuthAPIServer, auth.ObserveOAuthAPIServer))
		}
		out, err := yaml.Marshal(want)
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

// gathered are the inputs that lie in the tree.
func gathered(t *testing.T, input fs.FS) auth.Inputs {
	t.Helper()
	tree, err := mustgather.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	var in auth.Inputs
	if infrastructure := get[unstructured.Unstructured](t, tree, configv1.GroupName, "infrastructures", "", auth.ConfigName); infrastructure != nil {
		cluster, err := topology.FromUnstructured(infrastructure)
		if err != nil {
			t.Fatal(err)
		}
		in.Cluster = &cluster
	}
	in.ClusterVersion = get[configv1.ClusterVersion](t, tree, configv1.GroupName, "clusterversions", "", auth.ClusterVersionName)
	in.Authentication = get[operatorv1.Authentication](t, tree, operatorv1.GroupName, "authentications", "", auth.ConfigName)
	in.OAuthServer = get[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", auth.OAuthServerNamespace, auth.OAuthServerName)
	in.OAuthAPIServer = get[appsv1.Deployment](t, tree, appsv1.GroupName, "deployments", auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName)
	nodes, err := tree.List(schema.GroupResource{Resource: "nodes"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		in.ControlPlaneNodes = append(in.ControlPlaneNodes, *decoded[corev1.Node](t, &nodes[i]))
	}
	return in
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
