// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifests returns the objects of YAML files in a folder.
func Manifests(t testing.TB, folder string, names ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(filepath.FromSlash(folder), filepath.FromSlash(name)))
		NoError(t, err)
		out = append(out, parse(t, string(text))...)
	}
	if len(out) == 0 {
		t.Fatalf("%v hold no objects", names)
	}
	return out
}

func parse(t testing.TB, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out
}

// Put creates the object as the administrator, or merges it into the existing one.
func (s *Server) Put(t testing.TB, u *unstructured.Unstructured) {
	t.Helper()
	admin := s.Admin(t)
	err := admin.Create(t.Context(), u.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		data, marshalErr := u.MarshalJSON()
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		err = admin.Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	}
	if err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
}
