// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

func all(string) bool { return true }

// A loop declares the objects of its files.
func TestStaticResources(t *testing.T) {
	files := fstest.MapFS{
		"a/1-namespace.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: openshift-kube-apiserver}\n")},
		"a/2-role.yaml":      {Data: []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:a'}\nrules: []\n")},
		"a/3-account.yaml":   {Data: []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: openshift-kube-apiserver}\n")},
		"a/4-service.yaml":   {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: openshift-kube-apiserver}\nspec: {ports: [{port: 443}]}\n")},
	}
	files["a/README.md"] = &fstest.MapFile{Data: []byte("text")}
	files["a/other.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")}
	l := librarygo.StaticResources("static", operator, files, func(file string) bool { return file != "other.yaml" })
	want := []store.Pattern{
		operator.Pattern(),
		{Resource: "namespaces", Name: namespace},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "system:a"},
		{Resource: "serviceaccounts", Namespace: namespace, Name: "a"},
		{Resource: "services", Namespace: namespace, Name: "a"},
	}
	if diff := cmp.Diff(want, l.Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	s := newStore(t)
	must(t, s, loop.Once(l))
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != len(want) {
		t.Errorf("there are %d objects, want %d", len(objects), len(want))
	}
	for _, object := range objects {
		if apiServer, is := object.(*operatorv1.KubeAPIServer); is {
			if c := apiServer.Status.Conditions; len(c) != 1 || c[0].Type != "KubeAPIServerStaticResourcesDegraded" || c[0].Status != operatorv1.ConditionFalse {
				t.Errorf("the conditions are %v", c)
			}
		}
	}
	if must(t, s, loop.Once(l)) {
		t.Error("a second run wrote something")
	}
}

func TestStaticResourcesErrors(t *testing.T) {
	for _, test := range []struct {
		name, content string
		contains      []string
	}{
		{"text.yaml", "text", []string{"static resource text.yaml"}},
		{"unknown.yaml", "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\n", []string{"unknown.yaml"}},
	} {
		files := fstest.MapFS{test.name: &fstest.MapFile{Data: []byte(test.content)}}
		fails(t, run(t, newStore(t), loop.Once(librarygo.StaticResources("static", operator, files, all))), append(test.contains, `"static"`)...)
	}
}
