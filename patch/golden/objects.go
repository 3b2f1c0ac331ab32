// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/topology"
)

// Object decodes an object of a resource such as "deployments.apps" from a must-gather; nil if there is none.
func Object[T any](t testing.TB, input fs.FS, resource, namespace, name string) *T {
	t.Helper()
	all := Objects[T](t, input, resource, namespace)
	if i := slices.IndexFunc(all, func(object T) bool { return nameOf(&object) == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Objects decodes the objects of a namespace, or the cluster-scoped ones, sorted by name.
func Objects[T any](t testing.TB, input fs.FS, resource, namespace string) []T {
	t.Helper()
	of := schema.ParseGroupResource(resource)
	scope := "cluster-scoped-resources"
	if namespace != "" {
		scope = path.Join("namespaces", namespace)
	}
	base := path.Join(scope, cmp.Or(of.Group, "core"), of.Resource)
	all := []T{}
	for _, pattern := range []string{base + "/*.yaml", base + ".yaml"} {
		files, err := fs.Glob(input, pattern)
		noError(t, err)
		for _, file := range files {
			text, err := fs.ReadFile(input, file)
			noError(t, err)
			var list struct{ Items []T }
			if err = yaml.Unmarshal(text, &list); err == nil && list.Items == nil {
				list.Items = make([]T, 1)
				err = yaml.Unmarshal(text, &list.Items[0])
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, list.Items...)
		}
	}
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(nameOf(&a), nameOf(&b)) })
	return all
}

func nameOf(object any) string { return object.(metav1.Object).GetName() }

// Topology decodes the topology; nil if there is no Infrastructure.
func Topology(t testing.TB, input fs.FS) *topology.Cluster {
	t.Helper()
	infrastructure := Object[unstructured.Unstructured](t, input, "infrastructures.config.openshift.io", "", "cluster")
	if infrastructure == nil {
		return nil
	}
	cluster, err := topology.FromUnstructured(infrastructure)
	noError(t, err)
	return &cluster
}
