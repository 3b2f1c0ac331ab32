// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// ErrNoRoot is returned by Find when neither the folder nor any of its parents holds a go.work.
var ErrNoRoot = errors.New("no go.work in this folder or above it; run this from inside the repository")

// ErrNoModule is returned by Workspace.Select for an unknown name.
var ErrNoModule = errors.New("no such module")

// ModulePrefix begins the path of every module of the repository.
const ModulePrefix = "github.com/solonode/sno/"

// Module is one Go module of the repository.
type Module struct {
	// Dir is relative to the root, with forward slashes, for example "examples/hosts/ingress-operator".
	Dir  string
	File *modfile.File
	// InWork reports whether go.work lists the module. The others are only built with GOWORK=off.
	InWork bool
}

// Name is the last element of the folder, as in "make test-NAME".
func (m Module) Name() string { return path.Base(m.Dir) }

// IsTool reports whether the module only pins a build tool (tools/*). Those have no Go code and separate pins.
func (m Module) IsTool() bool { return strings.HasPrefix(m.Dir, "tools/") }

// Workspace is the repository: its root and its modules, sorted by folder.
type Workspace struct {
	Root    string
	Modules []Module

	focus []string
}

// Focus limits InFocus and WithCode to some modules. Without names everything is in focus.
func (ws *Workspace) Focus(names ...string) error {
	modules, err := ws.Select(names...)
	if err != nil {
		return err
	}
	ws.focus = nil
	for _, m := range modules {
		ws.focus = append(ws.focus, m.Dir)
	}
	return nil
}

// InFocus reports whether a module folder, or a file relative to the root, is checked.
func (ws *Workspace) InFocus(name string) bool {
	return len(ws.focus) == 0 || slices.ContainsFunc(ws.focus, func(dir string) bool {
		return name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// Find searches dir and its parents for go.work, and loads the workspace.
func Find(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return Load(dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, ErrNoRoot
		}
		dir = parent
	}
}

// Load reads root/go.work and every go.mod below root, except in testdata and folders that start with a dot.
func Load(root string) (*Workspace, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, use := range work.Use {
		used[path.Clean(use.Path)] = true
	}

	ws := &Workspace{Root: root}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || entry.Name() != "go.mod" {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		parsed, err := modfile.Parse(relative, data, nil)
		if err != nil {
			return err
		}
		dir := path.Dir(relative)
		ws.Modules = append(ws.Modules, Module{Dir: dir, File: parsed, InWork: used[dir]})
		delete(used, dir)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for dir := range used {
		return nil, fmt.Errorf("go.work uses ./%s, which has no go.mod", dir)
	}
	slices.SortFunc(ws.Modules, func(a, b Module) int { return strings.Compare(a.Dir, b.Dir) })
	return ws, nil
}

// Select returns the modules with the given names or folders, in the order given; every name must match exactly one
// module.
func (ws *Workspace) Select(names ...string) ([]Module, error) {
	selected := make([]Module, 0, len(names))
	for _, name := range names {
		found := slices.IndexFunc(ws.Modules, func(m Module) bool { return m.Dir == name || !m.IsTool() && m.Name() == name })
		if found < 0 {
			return nil, fmt.Errorf("%w: %q", ErrNoModule, name)
		}
		selected = append(selected, ws.Modules[found])
	}
	return selected, nil
}

// WithCode returns the modules in focus that hold Go code: all but tools/* and those that only pin versions, like
// testcluster/kube.
func (ws *Workspace) WithCode() []Module {
	var modules []Module
	for _, m := range ws.Modules {
		if !m.IsTool() && ws.InFocus(m.Dir) && ws.hasCode(m) {
			modules = append(modules, m)
		}
	}
	return modules
}

func (ws *Workspace) hasCode(m Module) bool {
	errFound := errors.New("found")
	top := ws.Path(m.Dir)
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != top {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil || strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(entry.Name(), ".go") {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// Path returns the absolute form of a path relative to the root.
func (ws *Workspace) Path(relative string) string {
	return filepath.Join(ws.Root, filepath.FromSlash(relative))
}

// Files lists the files that git tracks, or would track after `git add .`, relative to the root, without deleted ones.
func (ws *Workspace) Files(ctx context.Context) ([]string, error) {
	out, err := ws.Command(ctx, ".", nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository with git: %w", withStderr(err))
	}
	var files []string
	for _, file := range strings.Split(string(bytes.TrimRight(out, "\x00")), "\x00") {
		if _, err := os.Lstat(ws.Path(file)); err == nil {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Command returns a command that runs in dir (relative to the root), with additional "NAME=value" environment entries.
func (ws *Workspace) Command(ctx context.Context, dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = ws.Path(dir)
	cmd.Env = append(os.Environ(), append([]string{"PWD=" + cmd.Dir}, env...)...)
	return cmd
}

// Environment returns the environment of a go command that builds the module as `make test` does: with go.work if it
// is listed there, without it otherwise.
func (ws *Workspace) Environment(m Module) []string {
	if m.InWork {
		return []string{"GOWORK=" + filepath.Join(ws.Root, "go.work")}
	}
	return Standalone()
}

// Standalone returns the environment in which a module is built without go.work, as in a vendoring repository.
func Standalone() []string {
	return []string{"GOWORK=off", "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=readonly")}
}

// CacheDir returns the folder of all caches: $SNO_CACHE, or sno/ in the user's cache folder. It need not exist.
func CacheDir() (string, error) {
	if base := os.Getenv("SNO_CACHE"); base != "" {
		return filepath.Abs(base)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: set SNO_CACHE or HOME: %w", err)
	}
	return filepath.Join(user, "sno"), nil
}

func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
