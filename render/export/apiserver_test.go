// SPDX-License-Identifier: Apache-2.0

package export

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rendertest"
)

// The API server accepts exported manifests, first as a dry run, and then has their content (R-REN-7).
func TestOnAPIServer(t *testing.T) {
	t.Parallel()
	server := rendertest.StartServer(t)
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := files.Write(dir, Files(manifests(t, small()))); err != nil {
		t.Fatal(err)
	}
	all := manifests(t, read(t, dir))
	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	for _, manifest := range all {
		if manifest.Object.GetKind() == "Namespace" {
			if _, err := server.Resource(t, manifest.Object).Create(t.Context(), manifest.Object, strict); err != nil {
				t.Fatal(err)
			}
		}
	}
	dry := strict
	dry.DryRun = []string{metav1.DryRunAll}
	for _, manifest := range all {
		if manifest.Object.GetKind() != "Namespace" {
			if _, err := server.Resource(t, manifest.Object).Create(t.Context(), manifest.Object, dry); err != nil {
				t.Errorf("dry run of %s: %v", manifest.Name, err)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}

	for _, manifest := range all {
		resource := server.Resource(t, manifest.Object)
		if manifest.Object.GetKind() != "Namespace" {
			if _, err := resource.Create(t.Context(), manifest.Object, strict); err != nil {
				t.Errorf("create %s: %v", manifest.Name, err)
				continue
			}
		}
		for _, request := range manifest.StatusRequests() {
			if _, err := resource.ApplyStatus(t.Context(), request.GetName(), request, metav1.ApplyOptions{FieldManager: "sno-render"}); err != nil {
				t.Errorf("status of %s: %v", manifest.Name, err)
			}
		}
		live, err := resource.Get(t.Context(), manifest.Object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("get %s: %v", manifest.Name, err)
			continue
		}
		if diff := cmp.Diff(manifest.Object.Object, common(manifest.Object.Object, live.Object)); diff != "" {
			t.Errorf("%s (-manifest +API server):\n%s", manifest.Name, diff)
		}
	}
}

func read(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	objects, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func common(manifest, live any) any {
	switch manifest := manifest.(type) {
	case map[string]any:
		liveMap, ok := live.(map[string]any)
		if !ok {
			return live
		}
		both := map[string]any{}
		for key, value := range manifest {
			if liveValue, ok := liveMap[key]; ok {
				both[key] = common(value, liveValue)
			}
		}
		return both
	case []any:
		liveList, ok := live.([]any)
		if !ok || len(liveList) != len(manifest) {
			return live
		}
		both := make([]any, len(manifest))
		for i := range manifest {
			both[i] = common(manifest[i], liveList[i])
		}
		return both
	}
	return live
}
