// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
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

var allModules = []string{"approver", "auth", "console", "etcdguard", "ingress", "machineconfig"}

func TestManifests(t *testing.T) {
	want := map[string]string{}
	for _, name := range append(slices.Clone(allModules), "all", "current") {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../config/"+name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		want[name] = string(text)
	}
	generated(t, "manifests", ".yaml", want)
}
