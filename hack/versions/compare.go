// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/solonode/sno/hack/workspace"
)

// unreleased is the version of a sibling that has no releases, as `go mod tidy` writes it.
const unreleased = "v0.0.0-00010101000000-000000000000"

// Compare returns one line per difference between versions.yaml and the go.mod files.
func Compare(file *File, ws *workspace.Workspace) (faults []string) {
	known := map[string]bool{}
	for _, m := range ws.Modules {
		known[m.Dir] = true
		for _, fault := range file.faults(m, ws) {
			faults = append(faults, m.Dir+"/go.mod: "+fault)
		}
	}
	for _, dir := range file.Release.Modules() {
		if !known[dir] {
			faults = append(faults, "hack/versions.yaml: release lists "+dir+", which go.work does not have")
		}
	}
	return faults
}

func (f *File) faults(m workspace.Module, ws *workspace.Workspace) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	// A directive of a library is a lower bound for who vendors it; what programs require may need a newer Go.
	isLibrary := slices.Contains(f.Release.Libraries, m.Dir)
	if m.File.Go == nil || m.File.Go.Version != f.Go[Set] && (isLibrary || m.File.Go.Version != f.Go[Newest]) {
		fault("the go directive must be %s", f.Go[Set])
	}
	if m.File.Toolchain != nil {
		fault("must have no toolchain line: it would force a Go version on modules that vendor this one")
	}
	for _, require := range m.File.Require {
		name := require.Mod.Path
		replaced := replacement(m.File, name)
		if dir := siblingOf(name, m, ws); dir != "" {
			want := f.siblingVersion(name)
			if replaced.Path != dir || replaced.Version != "" {
				fault("needs `replace %s => %s`: without it `go mod tidy` fails", name, dir)
			}
			if require.Mod.Version != want {
				fault("%s is %s, must be %s (release)", name, require.Mod.Version, want)
			}
			continue
		}
		version := require.Mod.Version
		if replaced.Path != "" {
			version = replaced.Version
		}
		want, pinned := f.PinOf(name, f.ColumnOf(m.Dir))
		switch {
		case pinned && version != want:
			fault("%s is %s, must be %s", name, version, want)
		case !pinned && f.governs(name):
			fault("%s is neither pinned nor listed as unpinned in hack/versions.yaml", name)
		}
	}
	return faults
}

// siblingVersion returns the version at which modules require a sibling.
func (f *File) siblingVersion(name string) string {
	if slices.Contains(f.Release.Modules(), strings.TrimPrefix(name, workspace.ModulePrefix)) {
		return f.Release.Version
	}
	return unreleased
}

// siblingOf returns the relative path of a module of this repository; it is empty for others.
func siblingOf(name string, m workspace.Module, ws *workspace.Workspace) string {
	i := slices.IndexFunc(ws.Modules, func(other workspace.Module) bool { return other.File.Module.Mod.Path == name })
	if i < 0 {
		return ""
	}
	relative, err := filepath.Rel(m.Dir, ws.Modules[i].Dir)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(relative)
}

func replacement(file *modfile.File, name string) module.Version {
	for _, replace := range file.Replace {
		if replace.Old.Path == name {
			return replace.New
		}
	}
	return module.Version{}
}

// Rewrite makes every go.mod agree with versions.yaml as far as a version, a go directive of a library or a replace
// line can, and returns the folders of those it changed. Indirect requirements may need a `go mod tidy` afterwards.
func Rewrite(file *File, ws *workspace.Workspace) (changed []string, err error) {
	for _, m := range ws.Modules {
		if len(file.faults(m, ws)) == 0 {
			continue
		}
		m.File.DropToolchainStmt()
		if slices.Contains(file.Release.Libraries, m.Dir) {
			err = m.File.AddGoStmt(file.Go[Set])
		}
		for _, require := range slices.Clone(m.File.Require) {
			name := require.Mod.Path
			want, pinned := file.PinOf(name, file.ColumnOf(m.Dir))
			switch dir := siblingOf(name, m, ws); {
			case dir != "":
				err = errors.Join(err, m.File.AddRequire(name, file.siblingVersion(name)), m.File.AddReplace(name, "", dir, ""))
			case pinned && replacement(m.File, name).Version != "":
				err = errors.Join(err, m.File.AddReplace(name, "", replacement(m.File, name).Path, want))
			case pinned:
				err = errors.Join(err, m.File.AddRequire(name, want))
			}
		}
		m.File.Cleanup()
		text, formatErr := m.File.Format()
		if err := errors.Join(err, formatErr); err != nil {
			return changed, err
		}
		if err := os.WriteFile(ws.Path(m.Dir+"/go.mod"), text, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, m.Dir)
	}
	return changed, nil
}

// inDocument matches a version of a module or package of this repository, as `go get` takes it.
var inDocument = regexp.MustCompile(`(` + regexp.QuoteMeta(workspace.ModulePrefix) + `[\w./-]+@)(v\d[\w.+-]*\w)`)

// SetInDocument returns a document whose commands get the version of the release.
func SetInDocument(text, version string) string {
	return inDocument.ReplaceAllString(text, "${1}"+version)
}
