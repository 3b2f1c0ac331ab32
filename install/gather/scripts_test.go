// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

// The scripts write the result to where openshift-install and upstream's gather script fetch it.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	programs(t, before)
	bundle, _ := bundled(t, Options{Root: dir, ID: "7", NodeOnly: true})
	fixture.Put(t, dir, "bundle", bundle)
	fixture.Script(t, dir, "sno-install", "echo \"$*\" >>"+dir+"/arguments; cat "+dir+"/bundle")
	fixture.Script(t, dir, "sudo", "exec \"$@\"")
	run := func(script string) {
		t.Helper()
		script = strings.ReplaceAll(script, "/"+node.Program, filepath.Join(dir, "sno-install"))
		command := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "gather.sh", "--id", "7")
		command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run(Script())
	// A link that another user has created is replaced, and not followed.
	fixture.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "artifacts-7")))
	run(MastersScript())
	run(MastersScript())
	if info, err := os.Lstat(filepath.Join(dir, "artifacts-7")); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v: want a private folder", info, err)
	}
	for name, want := range map[string]string{
		"log-bundle-7.tar.gz": bundle, "artifacts-7/journals/kubelet.log": before,
		"arguments": "gather --id 7 --output -\n" + strings.Repeat("gather --id 7 --node-only --output -\n", 2),
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
