// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/testcluster/assets"
)

func TestManifest(t *testing.T) {
	module, err := assets.ModuleFolder(t.Context(), Module)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Infrastructures, Ingresses, "schedulers.config.openshift.io", ClusterOperators, IngressControllers} {
		manifest, err := Manifest(module, name)
		if err != nil {
			t.Error(err)
		}
		for _, gated := range []string{"TechPreview", "DevPreview", "CustomNoUpgrade", "OKD", "Hypershift"} {
			if strings.Contains(filepath.Base(manifest), gated) {
				t.Errorf("%s: %s is not what an ordinary cluster installs", name, filepath.Base(manifest))
			}
		}
	}
	for _, name := range []string{"ingresses.operator.openshift.io.example", "nothing.config.openshift.io", "", "*"} {
		if _, err := Manifest(module, name); !errors.Is(err, ErrNoCRD) {
			t.Errorf("%q: %v, want ErrNoCRD", name, err)
		}
	}
}
