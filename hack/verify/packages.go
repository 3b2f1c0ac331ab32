// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// packagesFile lists between packagesBegin and packagesEnd how many packages are built with the root package of a
// vendored module.
const (
	packagesFile  = "docs/vendoring.md"
	packagesBegin = "<!-- packages -->"
	packagesEnd   = "<!-- end of packages -->"
)

// packagesRow is the module's row of that table: how many packages its root package needs, without Go's and this
// repository's, and how many of them are client-go's without apply configurations.
func packagesRow(m workspace.Module, packages []goPackage) string {
	standard := map[string]bool{}
	var root goPackage
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
		if p.ImportPath == m.File.Module.Mod.Path {
			root = p
		}
	}
	all, client := 0, 0
	for _, dependency := range root.Deps {
		if standard[dependency] || strings.HasPrefix(dependency, workspace.ModulePrefix) {
			continue
		}
		all++
		if rest, is := strings.CutPrefix(dependency, "k8s.io/client-go/"); is && !strings.HasPrefix(rest, "applyconfigurations") {
			client++
		}
	}
	return fmt.Sprintf("| %s | %d | %d |", m.Dir, all, client)
}

// packagesFaults compares the rows with the document. A repository without it passes.
func packagesFaults(ws *workspace.Workspace, rows []string) ([]string, error) {
	text, err := os.ReadFile(ws.Path(packagesFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, after, begins := strings.Cut(string(text), packagesBegin)
	table, _, ends := strings.Cut(after, packagesEnd)
	if !begins || !ends {
		return []string{fmt.Sprintf("%s: needs %s and %s around its numbers of packages", packagesFile, packagesBegin, packagesEnd)}, nil
	}
	written := strings.Split(strings.TrimSpace(table), "\n")
	written = written[min(2, len(written)):]
	var faults []string
	for _, row := range rows {
		if !slices.Contains(written, row) {
			faults = append(faults, fmt.Sprintf("%s: must have the row %s", packagesFile, row))
		}
	}
	for _, row := range written {
		if !slices.Contains(rows, row) {
			faults = append(faults, fmt.Sprintf("%s: has the row %s, which is wrong", packagesFile, row))
		}
	}
	return faults, nil
}
