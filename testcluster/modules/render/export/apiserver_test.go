// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/testcluster/apiserver"
)

var definitions = []string{
	"proxies.config.openshift.io", "apiservers.config.openshift.io", "authentications.config.openshift.io", "dnses.config.openshift.io",
	"featuregates.config.openshift.io", "images.config.openshift.io", "infrastructures.config.openshift.io", "ingresses.config.openshift.io",
	"networks.config.openshift.io", "nodes.config.openshift.io", "oauths.config.openshift.io", "schedulers.config.openshift.io",
	"etcds.operator.openshift.io", "kubeapiservers.operator.openshift.io", "kubecontrollermanagers.operator.openshift.io",
	"kubeschedulers.operator.openshift.io",
}

// rendered returns the manifests of a rendered control plane, which were written to files and read again.
func rendered(t *testing.T, profile inputs.Profile) []export.Manifest {
	t.Helper()
	cluster, err := inputs.Read(os.DirFS("testdata/module/testdata/input/one-node-encrypted"), time.Now())
	apiserver.NoError(t, err)
	o := inputs.Options{Profile: profile, Version: "1.35.2", Images: map[string]string{}}
	if profile == inputs.OpenShift {
		o.Release = "4.22.0"
		for _, name := range inputs.OpenShiftImages {
			o.Images[name] = "registry.example.test/" + name + ":1"
		}
	}
	s, err := cluster.Settings(o)
	apiserver.NoError(t, err)
	result, err := render.Run(t.Context(), s, render.Options{})
	apiserver.NoError(t, err)
	manifests, err := export.Manifests(result.Objects)
	apiserver.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "manifests")
	apiserver.NoError(t, files.Write(dir, export.Files(manifests)))
	objects, err := export.Read(os.DirFS(dir))
	apiserver.NoError(t, err)
	manifests, err = export.Manifests(objects)
	apiserver.NoError(t, err)
	return manifests
}

// A real API server accepts all manifests of a rendered control plane in their order, without unknown fields, first as
// a dry run, and then has their content and their status (R-REN-7).
func TestManifestsOnAPIServer(t *testing.T) {
	profiles := []inputs.Profile{inputs.OpenShift, inputs.Kubernetes}
	if testing.Short() {
		profiles = profiles[:1]
	}
	for _, profile := range profiles {
		t.Run(string(profile), func(t *testing.T) {
			admin := apiserver.Start(t, apiserver.Options{CRDs: definitions}).Admin(t)
			all := rendered(t, profile)
			create := func(manifest export.Manifest, options ...client.CreateOption) bool {
				options = append(options, client.FieldValidation(metav1.FieldValidationStrict))
				if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), manifest.Object.DeepCopy(), options...)); err != nil {
					t.Errorf("create %s: %v", manifest.Name, err)
					return false
				}
				return true
			}
			for _, manifest := range all {
				if manifest.Object.GetKind() == "Namespace" {
					create(manifest)
				}
			}
			for _, manifest := range all {
				if manifest.Object.GetKind() != "Namespace" {
					create(manifest, client.DryRunAll)
				}
			}
			if t.Failed() {
				t.FailNow()
			}
			for _, manifest := range all {
				if manifest.Object.GetKind() != "Namespace" && !create(manifest) {
					continue
				}
				for _, request := range manifest.StatusRequests() {
					err := admin.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(request), client.FieldOwner("sno-render"))
					if err != nil {
						t.Errorf("status of %s: %v", manifest.Name, err)
					}
				}
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(manifest.Object.GroupVersionKind())
				apiserver.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(manifest.Object), live))
				if diff := cmp.Diff(manifest.Object.Object, common(manifest.Object.Object, live.Object)); diff != "" {
					t.Errorf("%s (-manifest +API server):\n%s", manifest.Name, diff)
				}
			}
		})
	}
}

// common returns the part of the live object that the manifest has.
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
			if value == int64(0) {
				both[key] = value // the API server sets a default
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
