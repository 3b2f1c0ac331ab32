// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestWriteLayout(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := Image{Name: "registry.invalid/sno/b:1", Files: map[string]string{"b": binary}, Architecture: "amd64"}
	other, second := one, one
	other.Architecture = "arm64"
	second.Name = "registry.invalid/sno/a:1"
	var indexes [2][]byte
	for i := range indexes {
		folder := filepath.Join(dir, string(rune('0'+i)))
		if err := WriteLayout(folder, one, second, other); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		indexes[i] = text
	}
	if diff := cmp.Diff(string(indexes[0]), string(indexes[1])); diff != "" {
		t.Errorf("the same files gave other images:\n%s", diff)
	}

	folder := filepath.Join(dir, "0")
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	all, err := ReadLayout(folder)
	if err != nil || len(all) != 2 || all[0].Name != "sno/b:1" || all[1].Name != "sno/a:1" || all[0].Size <= all[1].Size {
		t.Fatalf("%+v, %v", all, err)
	}
	index, err := top.ImageIndex(all[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var architectures []string
	for _, d := range list.Manifests {
		architectures = append(architectures, d.Platform.OS+"/"+d.Platform.Architecture)
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		got := []types.MediaType{d.MediaType, manifest.MediaType, manifest.Config.MediaType, manifest.Layers[0].MediaType}
		if diff := cmp.Diff([]types.MediaType{types.OCIManifestSchema1, types.OCIManifestSchema1, types.OCIConfigJSON, types.OCILayer}, got); diff != "" {
			t.Errorf("types (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, architectures); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestWriteLayoutRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := WriteLayout(filepath.Join(dir, "a"), Image{Name: "no tag"}); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
	if err := WriteLayout(filepath.Join(dir, "a"), Image{Name: "registry.invalid/sno/a:1"}); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
	if err := WriteLayout(dir); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if _, err := ReadLayout(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
