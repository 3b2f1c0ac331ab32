// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/solonode/sno/cli"
)

// generated compares the files of a folder, or writes them with -update.
func generated(t *testing.T, folder, ending string, want map[string]string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*" + ending)
	if flag.Lookup("update").Value.String() == "true" {
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		for name, text := range want {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name+ending), []byte(text), 0o644))
		}
		files, _ = filepath.Glob(folder + "/*" + ending)
	}
	got := map[string]string{}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		got[strings.TrimSuffix(filepath.Base(file), ending)] = string(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("%s (-generated +there); run with -update:\n%s", folder, diff)
	}
}

func TestReference(t *testing.T) {
	root := cli.New(genericiooptions.NewTestIOStreamsDiscard())
	root.DisableAutoGenTag = true
	want := map[string]string{}
	for _, command := range append(runnable(root), root) {
		var page bytes.Buffer
		if err := doc.GenMarkdown(command, &page); err != nil {
			t.Fatal(err)
		}
		want[strings.ReplaceAll(command.CommandPath(), " ", "_")] = page.String()
	}
	generated(t, "../docs/kubectl-sno", ".md", want)
}

func TestManifests(t *testing.T) {
	overlays, err := filepath.Glob("../config/*/kustomization.yaml")
	want := map[string]string{}
	for _, overlay := range overlays {
		built, buildErr := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Dir(overlay))
		if buildErr != nil {
			t.Fatal(buildErr)
		}
		text, textErr := built.AsYaml()
		err = errors.Join(err, textErr)
		want[filepath.Base(filepath.Dir(overlay))] = string(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "manifests", ".yaml", want)
}
