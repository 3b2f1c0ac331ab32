// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/install/node"
)

// The scripts write the result to where openshift-install and upstream's gather script fetch it.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sno-install")
	bundle := filepath.Join(dir, "bundle.tar.gz")
	if err := os.WriteFile(bundle, zip(t, archive(t, map[string]string{"log-bundle-7/journals/kubelet.log": before})), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"sno-install": "echo \"$*\" >>" + dir + "/arguments; cat " + bundle, "sudo": "exec \"$@\""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runScript(t, dir, strings.ReplaceAll(Script(), "/"+node.Program, program))
	if got, err := os.ReadFile(filepath.Join(dir, "log-bundle-7.tar.gz")); err != nil || len(unpacked(t, got)) != 1 {
		t.Errorf("%v: no bundle in the home folder", err)
	}
	// A link that another user has created there is replaced, and not followed.
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "artifacts-7")); err != nil {
		t.Fatal(err)
	}
	masters := strings.ReplaceAll(MastersScript(), "/"+node.Program, program)
	runScript(t, dir, masters)
	runScript(t, dir, masters)
	if info, err := os.Lstat(filepath.Join(dir, "artifacts-7")); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v: want a private folder", info, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "artifacts-7", "journals", "kubelet.log")); err != nil || string(got) != before {
		t.Errorf("%q, %v: no files of the node", got, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if want := "gather --id 7 --output -\n" + strings.Repeat("gather --id 7 --node-only --output -\n", 2); err != nil || string(got) != want {
		t.Errorf("arguments %q, %v, want %q", got, err, want)
	}
}

func runScript(t *testing.T, dir, script string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "gather.sh", "--id", "7")
	command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
