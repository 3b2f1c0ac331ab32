// SPDX-License-Identifier: Apache-2.0

package ignitiontest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
)

var errEngine = errors.New("the Ignition engine failed")

// accounts are the files that useradd needs in a root.
var accounts = map[string]string{
	"etc/passwd":     "root:x:0:0:root:/:/bin/bash\n",
	"etc/group":      "root:x:0:\n",
	"etc/shadow":     "root:*:::::::\n",
	"etc/gshadow":    "root:*::\n",
	"etc/login.defs": "UID_MIN 1000\nGID_MIN 1000\nUSERGROUPS_ENAB yes\n",
}

// NewRoot returns the root folder of a machine with only the user root.
func NewRoot(t *testing.T) string {
	t.Helper()
	// t.TempDir is readable by its owner only, and the engine writes a user's keys as that user.
	root := fixture.Must(os.MkdirTemp("", "root-"))
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // as on a machine
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil { //nolint:gosec // as on a machine
		t.Fatal(err)
	}
	for path, text := range accounts {
		fixture.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	return root
}

// Apply applies a config to a root with the Ignition engine, as at the first boot: users, folders, files and units. It
// skips the test unless it runs as root, since it sets owners.
func Apply(t *testing.T, root string, config []byte) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the Ignition engine sets owners, for which the test must run as root")
	}
	engine, work := Tool(t, "ignition"), t.TempDir()
	file := filepath.Join(work, "config.ign")
	fixture.NoError(t, os.WriteFile(file, config, 0o600))
	for _, stage := range []string{"fetch", "files"} {
		cmd := exec.CommandContext(t.Context(), engine, "--platform", "file", "--stage", stage, "--root", root, "--log-to-stdout",
			"--config-cache", filepath.Join(work, "cache"), "--state-file", filepath.Join(work, "state"))
		cmd.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+file)
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: stage %s: %w\n%s", errEngine, stage, err, output)
		}
	}
	return nil
}

// Entry is a file, a folder or a link.
type Entry struct {
	Mode         fs.FileMode
	Owner, Group uint32
	Content      string // of a file, or the target of a link
}

// Tree returns all that was written to a root, by path, except accounts, what useradd adds to them, and folders of root
// with mode 0755.
func Tree(t *testing.T, root string) map[string]Entry {
	t.Helper()
	tree := map[string]Entry{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		if name == "" || bookkeeping(strings.TrimPrefix(name, "/")) {
			return nil
		}
		e, err := read(path, entry)
		if plain := (Entry{Mode: fs.ModeDir | 0o755}); err != nil || e == plain {
			return err
		}
		tree[name] = e
		return nil
	})
	fixture.NoError(t, err)
	return tree
}

func read(path string, entry fs.DirEntry) (Entry, error) {
	info, err := entry.Info()
	if err != nil {
		return Entry{}, err //nolint:wrapcheck // it names the file
	}
	e := Entry{Mode: info.Mode()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Owner, e.Group = stat.Uid, stat.Gid
	}
	switch {
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		e.Content = string(content)
		return e, err //nolint:wrapcheck // it names the file
	case info.Mode()&fs.ModeSymlink != 0:
		e.Content, err = os.Readlink(path)
		return e, err //nolint:wrapcheck // it names the file
	default:
		return e, nil
	}
}

func bookkeeping(path string) bool {
	_, account := accounts[strings.TrimSuffix(path, "-")]
	return account || path == "etc/.pwd.lock" || path == "etc/.ignition-result.json" || path == "etc/subuid" || path == "etc/subgid"
}

// Tool returns the path of a program that tools/run builds.
func Tool(t *testing.T, name string) string {
	t.Helper()
	dir := fixture.Must(os.Getwd())
	run := filepath.Join(dir, "tools", "run")
	for ; ; run = filepath.Join(dir, "tools", "run") {
		if _, err := os.Stat(run); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above the test has tools/run")
		}
		dir = filepath.Dir(dir)
	}
	cmd := exec.CommandContext(t.Context(), run, "-path", name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s, which this test needs: %v\n%s", name, err, &stderr)
	}
	return string(bytes.TrimSpace(path))
}

// Validate checks that ignition-validate prints nothing, not even a warning.
func Validate(t *testing.T, config []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Tool(t, "ignition-validate"), "-")
	cmd.Stdin = bytes.NewReader(config)
	if output, err := cmd.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("ignition-validate: %v\n%s\n%s", err, output, config)
	}
}
