// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"fmt"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/solonode/sno/hack/workspace"
)

// private matches packages without a promise, which only programs of this repository import: what reads and writes a
// cluster for the controllers, commands, and help for tests.
var private = regexp.MustCompile(`^([^/]+/(controller|internal)|approver/(approve|kubelet)|conformance/extension|patch/patchtest)(/|$)`)

// Load returns the public packages of libraries, by the folder of the library: all but programs and those without a
// promise.
func Load(ctx context.Context, ws *workspace.Workspace, dirs ...string) (map[string][]*types.Package, error) {
	var patterns []string
	for _, dir := range dirs {
		patterns = append(patterns, "./"+dir+"/...")
	}
	command := ws.Command(ctx, ".", []string{"GOWORK=" + ws.Path("go.work")}, "go")
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: command.Dir, Env: command.Env,
		Mode: packages.NeedName | packages.NeedModule | packages.NeedImports | packages.NeedTypes | packages.NeedExportFile,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	found := map[string][]*types.Package{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load packages: %w", p.Errors[0])
		}
		if p.Name != "main" && !private.MatchString(short(p.PkgPath)) {
			dir := short(p.Module.Path)
			found[dir] = append(found[dir], p.Types)
		}
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b *types.Package) int { return cmp.Compare(a.Path(), b.Path()) })
	}
	return found, nil
}

// Summary is the first sentence of a package's documentation.
type Summary struct {
	// Path is relative to the root of the repository.
	Path, Text string
	// Private is set for a package without a promise.
	Private bool
}

// Summaries returns the packages of a library, without programs.
func Summaries(ctx context.Context, ws *workspace.Workspace, dir string) (summaries []Summary, err error) {
	args := []string{"list", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Doc}}", "./" + dir + "/..."}
	out, err := ws.Command(ctx, ".", []string{"GOWORK=" + ws.Path("go.work")}, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: list packages: %w", dir, err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) == 3 && fields[1] != "main" {
			text := strings.TrimPrefix(fields[2], "Package "+fields[1]+" ")
			summaries = append(summaries, Summary{short(fields[0]), text, private.MatchString(short(fields[0]))})
		}
	}
	return summaries, nil
}
