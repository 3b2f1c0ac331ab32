// SPDX-License-Identifier: Apache-2.0

package rotate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/rotate"
	"github.com/solonode/sno/render/staticpods"
)

const traced = "SNO_TEST_LAY"

// Files are synced before the rename, and folders before manifests are written and at the end.
func TestWriteChangedSyncs(t *testing.T) {
	const manifest = staticpods.ManifestDir + "/m.yaml"
	if root := os.Getenv(traced); root != "" {
		if _, err := rotate.WriteChanged(root, []files.File{{Path: manifest, Mode: 0o600}, {Path: "etc/a", Mode: 0o600, Content: []byte("a")}, {Path: "etc/b", Mode: 0o600}}); err != nil {
			t.Fatal(err)
		}
		return
	}
	const strace = "strace"
	if err := exec.CommandContext(t.Context(), strace, "--trace=none", "--output="+os.DevNull, os.Args[0], "-test.run=^$").Run(); err != nil {
		t.Skipf("NOT TESTED: files are synced before the rename: %v", err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	c := exec.CommandContext(t.Context(), strace, "--follow-forks", "--decode-fds=path", "--trace=fsync,rename,renameat,renameat2", "--output", log,
		os.Args[0], "-test.run=^TestWriteChangedSyncs$")
	c.Env = append(os.Environ(), traced+"="+root)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, found := range regexp.MustCompile(`(?m)(fsync|rename)[at2]*\(\d+<`+root+`([^>]*)>(?:, "([^"]*)")?`).FindAllStringSubmatch(string(text), -1) {
		calls = append(calls, found[1]+" "+found[2]+found[3])
	}
	want := []string{
		"fsync /etc/.a.partial", "rename /etc.a.partial",
		"fsync /etc/.b.partial", "rename /etc.b.partial", "fsync ", "fsync /etc",
		"fsync /etc/kubernetes/manifests/.m.yaml.partial", "rename /etc/kubernetes/manifests.m.yaml.partial",
		"fsync ", "fsync /etc", "fsync /etc/kubernetes", "fsync /etc/kubernetes/manifests",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}
