// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// edges are the folders of a module that may do I/O. Everything else in a vendored module is pure. The linter checks
// direct imports by the same rule (.golangci.yaml); this step also checks indirect ones.
var edges = map[string]*regexp.Regexp{
	"patch": regexp.MustCompile(`^(apply|cluster[^/]*|controller|metrics|patchtest|run|status)(/|$)`),
	"":      regexp.MustCompile(`^(approve|cmd|controller|kubelet)(/|$)`), // every operator module
}

// impure matches what a pure package must not depend on, not even indirectly. Of client-go, rest and discovery are
// missing here because the apply configurations import them; the linter reports direct imports.
var impure = regexp.MustCompile(`^(sigs\.k8s\.io/controller-runtime|k8s\.io/client-go/(dynamic|informers|listers|tools/(cache|events|leaderelection|record))|github\.com/openshift/client-go/[^/]+/(clientset|informers|listers))(/|$)`)

// topologyRequires are the only modules that topology's go.mod may require directly; the last is for its tests.
var topologyRequires = []string{"github.com/openshift/api", "k8s.io/apimachinery", "github.com/google/go-cmp"}

// topologyImports matches what topology's packages, without their tests, may import in addition to the standard
// library.
var topologyImports = regexp.MustCompile(`^(github\.com/openshift/api|k8s\.io/apimachinery|github\.com/solonode/sno/topology)(/|$)`)

// alone has the modules that may depend on few others of the repository, and on which: the suite that CI of any
// operator imports, the test clusters, what renders a control plane before a cluster exists, and what installs a
// node, which renders, and approves by the rules of the approver.
var alone = map[string][]string{
	"conformance": {"topology"},
	"install":     {"topology", "render", "approver", "patch"},
	"render":      {"topology"},
	"testcluster": {"topology"},
}

// makesClusters matches packages that make clusters, machines or images. Suites that CI of an operator imports must
// not depend on them, nor must modules of operators.
var makesClusters = regexp.MustCompile(`^(sigs\.k8s\.io/kind|github\.com/(coreos/ignition|google/go-containerregistry|CycloneDX)|` +
	regexp.QuoteMeta(workspace.ModulePrefix) + `testcluster)(/|$)`)

type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func checkBoundaries(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	var faults Findings
	var errs []error
	var rows []string
	for _, m := range ws.WithCode() {
		isAlone, isHost := alone[m.Dir] != nil, strings.HasPrefix(m.Dir, "examples/")
		if isHost || m.Dir == "conformance" {
			faults = append(faults, clusterRequirements(m)...)
		}
		if !isVendored(m) && !isAlone {
			continue
		}
		packages, err := listPackages(ctx, ws, m)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if isAlone {
			faults = append(faults, foreignDependencies(m, packages)...)
			continue
		}
		faults = append(faults, impureDependencies(m, packages)...)
		rows = append(rows, packagesRow(m, packages))
		if m.Dir == "topology" {
			faults = append(faults, topologyFaults(m, packages)...)
		}
	}
	if len(errs) == 0 && ws.InFocus(packagesFile) {
		found, err := packagesFaults(ws, rows)
		if err != nil {
			return err
		}
		faults = append(faults, found...)
	}
	return errors.Join(faults.errorOrNil(), errors.Join(errs...))
}

// isVendored reports whether operators vendor the module: it is a top folder, is no program and makes or checks no
// cluster.
func isVendored(m workspace.Module) bool {
	return !strings.Contains(m.Dir, "/") && !slices.Contains([]string{"cli", "e2e", "hack"}, m.Dir) && alone[m.Dir] == nil
}

// foreignDependencies returns one line per package that the module must not depend on: those of other modules of the
// repository, and for conformance those that make clusters.
func foreignDependencies(m workspace.Module, packages []goPackage) []string {
	var faults []string
	for _, p := range packages {
		sibling, ours := strings.CutPrefix(p.ImportPath, workspace.ModulePrefix)
		sibling, _, _ = strings.Cut(sibling, "/")
		switch {
		case ours && sibling != m.Dir && !slices.Contains(alone[m.Dir], sibling):
			faults = append(faults, fmt.Sprintf("%s: may depend on no other module of the repository but %s, and depends on %s", m.Dir, strings.Join(alone[m.Dir], ", "), p.ImportPath))
		case m.Dir == "conformance" && makesClusters.MatchString(p.ImportPath):
			faults = append(faults, fmt.Sprintf("%s: must make no cluster, and depends on %s", m.Dir, p.ImportPath))
		}
	}
	return faults
}

func clusterRequirements(m workspace.Module) []string {
	var faults []string
	for _, require := range m.File.Require {
		if makesClusters.MatchString(require.Mod.Path) {
			faults = append(faults, fmt.Sprintf("%s/go.mod: requires %s, which only modules that make clusters need", m.Dir, require.Mod.Path))
		}
	}
	return faults
}

func listPackages(ctx context.Context, ws *workspace.Workspace, m workspace.Module) ([]goPackage, error) {
	out, err := ws.Command(ctx, m.Dir, workspace.Standalone(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: list packages: %w", m.Dir, err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: list packages: %w", m.Dir, err)
		}
		packages = append(packages, p)
	}
}

func impureDependencies(m workspace.Module, packages []goPackage) []string {
	edge, ok := edges[m.Dir]
	if !ok {
		edge = edges[""]
	}
	module := m.File.Module.Mod.Path
	var faults []string
	for _, p := range packages {
		inside := p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/")
		if !inside || edge.MatchString(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")) {
			continue
		}
		if i := slices.IndexFunc(p.Deps, impure.MatchString); i >= 0 {
			faults = append(faults, fmt.Sprintf("%s: must be pure, but depends on %s; see `go mod why` or go list -deps", p.ImportPath, p.Deps[i]))
		}
	}
	return faults
}

func topologyFaults(m workspace.Module, packages []goPackage) []string {
	var faults []string
	for _, require := range m.File.Require {
		if !require.Indirect && !slices.Contains(topologyRequires, require.Mod.Path) {
			faults = append(faults, fmt.Sprintf("%s/go.mod: may not require %s directly; allowed: %s", m.Dir, require.Mod.Path, strings.Join(topologyRequires, ", ")))
		}
	}
	standard := map[string]bool{"C": true}
	for _, p := range packages {
		standard[p.ImportPath] = standard[p.ImportPath] || p.Standard
	}
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, m.File.Module.Mod.Path) {
			continue
		}
		for _, imported := range p.Imports {
			if !standard[imported] && !topologyImports.MatchString(imported) {
				faults = append(faults, fmt.Sprintf("%s: may not import %s", p.ImportPath, imported))
			}
		}
	}
	return faults
}
