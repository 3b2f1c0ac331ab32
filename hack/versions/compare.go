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

// Compare returns one line per difference between versions.yaml and the go.mod files.
func Compare(file *File, ws *workspace.Workspace) []string {
	var faults []string
	known := map[string]bool{}
	for _, m := range ws.Modules {
		if m.IsTool() {
			continue
		}
		known[m.Dir] = true
		leg, ok := file.LegOf(m.Dir)
		if !ok {
			faults = append(faults, m.Dir+"/go.mod: hack/versions.yaml lists this module on no leg")
			continue
		}
		for _, fault := range compareModule(file, leg, m, ws) {
			faults = append(faults, m.Dir+"/go.mod: "+fault)
		}
	}
	for _, leg := range []Leg{Floor, Newest} {
		for _, dir := range file.Legs[leg] {
			if !known[dir] {
				faults = append(faults, fmt.Sprintf("hack/versions.yaml: legs.%s lists %s, which has no go.mod", leg, dir))
			}
		}
	}
	for _, dir := range file.Release.Modules() {
		if !known[dir] {
			faults = append(faults, fmt.Sprintf("hack/versions.yaml: release lists %s, which has no go.mod", dir))
		}
	}
	return faults
}

func compareModule(file *File, leg Leg, m workspace.Module, ws *workspace.Workspace) []string {
	var faults []string
	if m.File.Go == nil || m.File.Go.Version != file.Go[leg] {
		faults = append(faults, fmt.Sprintf("the go directive must be %s (%s leg)", file.Go[leg], leg))
	}
	if m.File.Toolchain != nil {
		faults = append(faults, "must have no toolchain line: it would force a Go version on modules that vendor this one")
	}
	if slices.Contains(file.Release.Modules(), m.Dir) {
		faults = append(faults, replaceFaults(m, ws)...)
	}
	for _, require := range m.File.Require {
		module := require.Mod.Path
		if sibling, ok := siblingOf(module, m, ws); ok {
			faults = append(faults, siblingFaults(file, m, require.Mod, sibling)...)
			continue
		}
		version := effectiveVersion(m.File, module, require.Mod.Version)
		pin, pinned := file.pin(module)
		switch {
		case pinned && version != pin.Version(leg):
			faults = append(faults, fmt.Sprintf("%s is %s, must be %s (%s leg)", module, version, pin.Version(leg), leg))
		case !pinned && file.governs(module):
			faults = append(faults, module+" is neither pinned nor listed as unpinned in hack/versions.yaml")
		}
	}
	return faults
}

// unreleased is the version of a sibling that has no releases, as `go mod tidy` writes it.
const unreleased = "v0.0.0-00010101000000-000000000000"

// siblingVersion returns the version at which modules require a sibling.
func siblingVersion(file *File, module string) string {
	if slices.Contains(file.Release.Modules(), strings.TrimPrefix(module, workspace.ModulePrefix)) {
		return file.Release.Version
	}
	return unreleased
}

func siblingFaults(file *File, m workspace.Module, require module.Version, dir string) (faults []string) {
	if !hasReplace(m.File, require.Path, dir) {
		faults = append(faults, fmt.Sprintf("needs `replace %s => %s`: without it GOWORK=off and `go mod tidy` fail", require.Path, dir))
	}
	want := siblingVersion(file, require.Path)
	switch {
	case want == unreleased && slices.Contains(file.Release.Modules(), m.Dir):
		faults = append(faults, fmt.Sprintf("is released, and requires %s, which hack/versions.yaml does not list under release", require.Path))
	case require.Version != want:
		faults = append(faults, fmt.Sprintf("%s is %s, must be %s (release)", require.Path, require.Version, want))
	}
	return faults
}

// replaceFaults returns the replace and exclude lines of a released module that have an effect only in this repository.
func replaceFaults(m workspace.Module, ws *workspace.Workspace) (faults []string) {
	for _, replace := range m.File.Replace {
		if _, ok := siblingOf(replace.Old.Path, m, ws); !ok {
			faults = append(faults, fmt.Sprintf("is released, and replaces %s, which has no effect in other repositories", replace.Old.Path))
		}
	}
	for _, exclude := range m.File.Exclude {
		faults = append(faults, fmt.Sprintf("is released, and excludes %s, which has no effect in other repositories", exclude.Mod))
	}
	return faults
}

// Rewrite makes every go.mod agree with versions.yaml as far as a version, a go directive or a replace line can, and
// returns the folders of those it changed. Indirect requirements may need a `go mod tidy` afterwards.
func Rewrite(file *File, ws *workspace.Workspace) ([]string, error) {
	var changed []string
	for _, m := range ws.Modules {
		leg, ok := file.LegOf(m.Dir)
		if !ok || m.IsTool() || len(compareModule(file, leg, m, ws)) == 0 {
			continue
		}
		if err := m.File.AddGoStmt(file.Go[leg]); err != nil {
			return changed, err
		}
		m.File.DropToolchainStmt()
		for _, require := range slices.Clone(m.File.Require) {
			module := require.Mod.Path
			var err error
			if sibling, ok := siblingOf(module, m, ws); ok {
				err = errors.Join(m.File.AddRequire(module, siblingVersion(file, module)), m.File.AddReplace(module, "", sibling, ""))
			} else if pin, ok := file.pin(module); ok {
				if replace := replaceOf(m.File, module); replace != nil && replace.New.Version != "" {
					err = m.File.AddReplace(module, replace.Old.Version, replace.New.Path, pin.Version(leg))
				} else {
					err = m.File.AddRequire(module, pin.Version(leg))
				}
			}
			if err != nil {
				return changed, err
			}
		}
		m.File.Cleanup()
		data, err := m.File.Format()
		if err != nil {
			return changed, err
		}
		if err := os.WriteFile(ws.Path(m.Dir+"/go.mod"), data, 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, m.Dir)
	}
	return changed, nil
}

// Raise sets the go directive and every pinned requirement to the versions of the leg.
func Raise(mod *modfile.File, file *File, leg Leg) error {
	if err := mod.AddGoStmt(file.Go[leg]); err != nil {
		return err
	}
	for _, require := range slices.Clone(mod.Require) {
		if pin, ok := file.pin(require.Mod.Path); ok {
			if err := mod.AddRequire(require.Mod.Path, pin.Version(leg)); err != nil {
				return err
			}
		}
	}
	mod.Cleanup()
	return nil
}

func siblingOf(module string, m workspace.Module, ws *workspace.Workspace) (string, bool) {
	if !strings.HasPrefix(module, workspace.ModulePrefix) {
		return "", false
	}
	for _, other := range ws.Modules {
		if other.File.Module.Mod.Path != module {
			continue
		}
		relative, err := filepath.Rel(filepath.FromSlash(m.Dir), filepath.FromSlash(other.Dir))
		if err != nil {
			return "", false
		}
		relative = filepath.ToSlash(relative)
		if !strings.HasPrefix(relative, "../") {
			relative = "./" + relative
		}
		return relative, true
	}
	return "", false
}

// inDocument matches a version of a module or package of this repository, as `go get` takes it.
var inDocument = regexp.MustCompile(`(` + regexp.QuoteMeta(workspace.ModulePrefix) + `[\w./-]+@)(v\d[\w.+-]*\w)`)

// SetInDocument returns a document whose commands get the version of the release.
func SetInDocument(text, version string) string {
	return inDocument.ReplaceAllString(text, "${1}"+version)
}

// CompareDocument returns one line for each other version in a document.
func CompareDocument(file *File, name, text string) (faults []string) {
	for i, line := range strings.Split(text, "\n") {
		for _, match := range inDocument.FindAllStringSubmatch(line, -1) {
			if match[2] != file.Release.Version {
				faults = append(faults, fmt.Sprintf("%s:%d: has %s%s, must have %s (release)", name, i+1, match[1], match[2], file.Release.Version))
			}
		}
	}
	return faults
}

func hasReplace(file *modfile.File, module, dir string) bool {
	replace := replaceOf(file, module)
	return replace != nil && replace.New.Version == "" && replace.New.Path == dir
}

func replaceOf(file *modfile.File, module string) *modfile.Replace {
	for _, replace := range file.Replace {
		if replace.Old.Path == module {
			return replace
		}
	}
	return nil
}

func effectiveVersion(file *modfile.File, module, required string) string {
	if replace := replaceOf(file, module); replace != nil {
		return replace.New.Version
	}
	return required
}
