package manifests

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	_ "github.com/solonode/sno/patch/patchtest" // declares -update
)

// config holds the overlays.
const config = "../../config"

// What is embedded is what kustomize makes of config/. -update builds it anew.
func TestBuilt(t *testing.T) {
	overlays, err := filepath.Glob(config + "/*/kustomization.yaml")
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	update := flag.Lookup("update").Value.String() == "true"
	var names []string
	for _, overlay := range overlays {
		name := filepath.Base(filepath.Dir(overlay))
		names = append(names, name)
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Dir(overlay))
		if err != nil {
			t.Fatal(err)
		}
		want, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		if update {
			if err := os.WriteFile(name+".yaml", want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name + ".yaml")
		if err != nil {
			t.Errorf("%v; run with -update", err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
			t.Errorf("%s is not what config/%s makes (-config +embedded); run with -update:\n%s", name, name, diff)
		}
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) != len(names) {
		t.Errorf("embedded are %v, overlays %v: %v", files, names, err)
	}
	if _, err := Of("moon"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
}
