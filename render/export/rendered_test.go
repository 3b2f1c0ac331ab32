// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rendertest"
)

// A real API server accepts all manifests of a rendered control plane in their order, without unknown fields (R-REN-7).
// Namespaces are created, everything else is a dry run. The test is not in package render, where tests fix the random
// numbers of the process, because connections to a server read them.
func TestManifestsOnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("renders both profiles, and starts an API server")
	}
	server := rendertest.StartServer(t)
	for _, profile := range []inputs.Profile{inputs.Kubernetes, inputs.OpenShift} {
		t.Run(string(profile), func(t *testing.T) {
			cluster, err := inputs.Read(os.DirFS("../testdata/input/one-node-encrypted"), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			o := inputs.Options{Profile: profile, Version: "1.35.2", Images: map[string]string{}}
			if profile == inputs.OpenShift {
				o.Release = "4.22.0"
				for _, name := range inputs.OpenShiftImages {
					o.Images[name] = "registry.example.test/" + name + ":1"
				}
			}
			s, err := cluster.Settings(o)
			if err != nil {
				t.Fatal(err)
			}
			result, err := render.Run(t.Context(), s, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			manifests, err := export.Manifests(result.Objects)
			if err != nil {
				t.Fatal(err)
			}
			for _, manifest := range manifests {
				options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
				if manifest.Object.GetKind() == "Namespace" {
					options.DryRun = nil
				}
				_, err := server.Resource(t, manifest.Object).Create(t.Context(), manifest.Object, options)
				if err != nil && !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v", manifest.Name, err)
				}
			}
		})
	}
}
