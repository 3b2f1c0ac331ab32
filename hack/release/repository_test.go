// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a repository in which patch requires topology.
func sample() map[string]string {
	return map[string]string{
		"LICENSE":      "a license\n",
		"go.work":      "go 1.26.0\n\nuse (\n\t./patch\n\t./topology\n)\n",
		"docs/page.md": "go get github.com/solonode/sno/patch@v0.1.0\n",
		"CHANGELOG.md": "# Changelog\n\n## [0.2.0]\n\n- Everything.\n",
		"hack/versions.yaml": "go: {set: 1.25.0, newest: 1.26.0}\ngoverned: []\npins: []\nunpinned: []\n" +
			"release:\n  version: v0.1.0\n  libraries: [topology, patch]\n  programs: []\n",
		"topology/go.mod":         "module github.com/solonode/sno/topology\n\ngo 1.25.0\n",
		"topology/topology.go":    "package topology\n\nconst Replicas = 1\n",
		"topology/nested/go.mod":  "module example.com/nested\n",
		"topology/nested/file.go": "package nested\n",
		"patch/go.mod": "module github.com/solonode/sno/patch\n\ngo 1.25.0\n\nrequire github.com/solonode/sno/topology v0.1.0\n\n" +
			"replace github.com/solonode/sno/topology => ../topology\n",
		"patch/patch.go": "package patch\n\nimport \"github.com/solonode/sno/topology\"\n\nfunc Replicas() int { return topology.Replicas }\n",
		"patch/patch_test.go": "package patch\n\nimport \"testing\"\n\n" +
			"func Test(t *testing.T) {\n\tif Replicas() != 1 {\n\t\tt.Error(\"not one replica\")\n\t}\n}\n",
	}
}

// commit makes a repository with one commit of the files.
func commit(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		t.Setenv(name, value)
	}
	root := t.TempDir()
	for name, text := range files {
		write(t, root, name, text)
	}
	git(t, root, "init", "--quiet", "--initial-branch=main")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "--message=all: begin")
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := repository{root}.git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replaced returns the files with one text changed, which must occur once.
func replaced(t *testing.T, files map[string]string, name, old, new string) map[string]string {
	t.Helper()
	if strings.Count(files[name], old) != 1 {
		t.Fatalf("%q must occur once in %s", old, name)
	}
	files[name] = strings.Replace(files[name], old, new, 1)
	return files
}
