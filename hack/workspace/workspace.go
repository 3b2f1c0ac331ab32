// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// ModulePrefix begins the path of every module of the repository.
const ModulePrefix = "github.com/solonode/sno/"

// Module is one Go module of the workspace.
type Module struct {
	// Dir is relative to the root, with forward slashes, for example "examples/olm-operator".
	Dir  string
	File *modfile.File
}

// Name is the last element of the folder, as in "make test-NAME".
func (m Module) Name() string { return path.Base(m.Dir) }

// Workspace has the modules of go.work. testcluster/ocm and those below tools/ are not part of it: each has versions of
// its own.
type Workspace struct {
	Root    string
	Modules []Module
}

// Find loads the workspace of a folder or its closest parent with a go.work.
func Find(dir string) (*Workspace, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			return Load(root)
		}
		if root == filepath.Dir(root) {
			return nil, errors.New("no go.work in this folder or above it; run this from inside the repository")
		}
	}
}

// Load reads root/go.work and the go.mod of every module in it.
func Load(root string) (*Workspace, error) {
	ws := &Workspace{Root: root}
	data, err := os.ReadFile(ws.Path("go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		m := Module{Dir: path.Clean(use.Path)}
		name := m.Dir + "/go.mod"
		if data, err = os.ReadFile(ws.Path(name)); err != nil {
			return nil, fmt.Errorf("go.work uses %s: %w", use.Path, err)
		}
		if m.File, err = modfile.Parse(name, data, nil); err != nil {
			return nil, err
		}
		ws.Modules = append(ws.Modules, m)
	}
	return ws, nil
}

// Select returns the modules with the given names or folders, or all without names.
func (ws *Workspace) Select(names ...string) ([]Module, error) {
	if len(names) == 0 {
		return ws.Modules, nil
	}
	var selected []Module
	for _, name := range names {
		i := slices.IndexFunc(ws.Modules, func(m Module) bool { return m.Dir == name || m.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("go.work has no module %q", name)
		}
		selected = append(selected, ws.Modules[i])
	}
	return selected, nil
}

// Path returns the absolute form of a path relative to the root.
func (ws *Workspace) Path(relative string) string {
	return filepath.Join(ws.Root, filepath.FromSlash(relative))
}

// Files lists the files that git tracks, or would track after `git add .`, relative to the root, without deleted ones.
func (ws *Workspace) Files(ctx context.Context) ([]string, error) {
	out, err := Output(ws.Command(ctx, ".", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if info, err := os.Lstat(ws.Path(string(name))); err == nil && info.Mode().IsRegular() {
			files = append(files, string(name))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Command returns a command that runs in dir (relative to the root).
func (ws *Workspace) Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = ws.Path(dir)
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir)
	return cmd
}

// Output runs a command and returns what it writes to standard output. An error has what it writes to standard error.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
