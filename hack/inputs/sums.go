// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// Sums computes sums of inputs. It reads every folder once.
type Sums struct {
	ws    *workspace.Workspace
	files []string
	tools string
	sums  map[string]string
	skip  []string
}

// Read lists the files of the repository. Files with a name in skip are no inputs.
func Read(ctx context.Context, ws *workspace.Workspace, skip ...string) (*Sums, error) {
	out, err := ws.Command(ctx, ".", nil, "go", "env", "GOVERSION", "GOFLAGS", "GOOS", "GOARCH", "GOEXPERIMENT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for the version of Go: %w", err)
	}
	// The name of the folder contains the version of the Kubernetes programs.
	return (&Sums{ws: ws, tools: string(out) + filepath.Base(os.Getenv("KUBEBUILDER_ASSETS")), skip: skip}).Reread(ctx)
}

// Reread returns Sums of the current files.
func (s *Sums) Reread(ctx context.Context) (*Sums, error) {
	files, err := s.ws.Files(ctx)
	if err != nil {
		return nil, err
	}
	return &Sums{ws: s.ws, files: files, tools: s.tools, sums: map[string]string{}, skip: s.skip}, nil
}

// Tools returns the Go version, its settings, and the version of the Kubernetes programs.
func (s *Sums) Tools() string { return s.tools }

// Closure returns the folders of the modules and of the repository's modules that they require, sorted.
func (s *Sums) Closure(dirs ...string) []string {
	dirs = slices.Clone(dirs)
	for i := 0; i < len(dirs); i++ {
		for _, sibling := range s.siblings(dirs[i]) {
			if !slices.Contains(dirs, sibling) {
				dirs = append(dirs, sibling)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func (s *Sums) siblings(dir string) []string {
	required := map[string]bool{}
	for _, m := range s.ws.Modules {
		if m.Dir == dir {
			for _, require := range m.File.Require {
				required[require.Mod.Path] = true
			}
		}
	}
	var dirs []string
	for _, m := range s.ws.Modules {
		if m.File.Module != nil && required[m.File.Module.Mod.Path] {
			dirs = append(dirs, m.Dir)
		}
	}
	return dirs
}

// Path returns the sum of a file, or of the files of a folder and their names; "." is the whole repository.
func (s *Sums) Path(name string) (string, error) {
	return s.once(name, func(file string) bool {
		return !slices.Contains(s.skip, path.Base(file)) && (name == "." || file == name || strings.HasPrefix(file, name+"/"))
	})
}

// Versions returns the sum of the files that determine the versions of all dependencies: in a workspace, every go.mod.
func (s *Sums) Versions() (string, error) {
	return s.once("versions", func(name string) bool {
		return name == "go.work" || path.Base(name) == "go.mod" && s.inWork(path.Dir(name))
	})
}

func (s *Sums) inWork(dir string) bool {
	return slices.ContainsFunc(s.ws.Modules, func(m workspace.Module) bool { return m.Dir == dir && m.InWork })
}

func (s *Sums) once(what string, counts func(name string) bool) (string, error) {
	if known, ok := s.sums[what]; ok {
		return known, nil
	}
	var parts []string
	for _, name := range s.files {
		if !counts(name) {
			continue
		}
		text, err := contents(s.ws.Path(name))
		if err != nil {
			return "", fmt.Errorf("read what a result depends on: %w", err)
		}
		parts = append(parts, name, text)
	}
	s.sums[what] = Sum(parts...)
	return s.sums[what], nil
}

func contents(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return os.Readlink(file)
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// Sum returns the SHA-256 of the parts, each with its length, so that different lists have different bytes.
func Sum(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // it never fails
	}
	return hex.EncodeToString(hash.Sum(nil))
}
