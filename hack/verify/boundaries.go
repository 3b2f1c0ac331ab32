// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// allowed has on which modules of the repository a module may depend. Vendored modules depend on no programs and
// suites, and those of operators not on each other; the suite and the test clusters do not depend on what they test.
// Modules that are not listed may depend on all.
var allowed = map[string][]string{
	"topology":      {},
	"patch":         {"topology"},
	"approver":      operators,
	"auth":          operators,
	"console":       operators,
	"etcdguard":     operators,
	"ingress":       operators,
	"machineconfig": operators,
	"conformance":   {"topology"},
	"testcluster":   {"topology"},
	"render":        {"topology"},
	"install":       {"topology", "render", "approver", "patch"},
	"fleet":         {"topology", "patch", "approver", "auth", "console", "etcdguard", "ingress", "machineconfig"},
}

var operators = []string{"topology", "patch"}

// edges are the folders of a vendored module that may do I/O. Everything else is pure. The linter checks direct imports
// by the same rule (.golangci.yaml).
var edges = map[string]*regexp.Regexp{
	"patch": regexp.MustCompile(`^(apply|cluster[^/]*|controller|golden|metrics|run|status)(/|$)`),
	"":      regexp.MustCompile(`^(approve|cmd|controller|kubelet)(/|$)`), // every operator module
}

// impure matches what a pure package must not depend on, not even indirectly. Of client-go, rest and discovery are
// missing here because the apply configurations import them; the linter reports direct imports.
var impure = regexp.MustCompile(`^(sigs\.k8s\.io/controller-runtime|k8s\.io/client-go/(dynamic|informers|listers|tools/(cache|events|leaderelection|record))|github\.com/openshift/client-go/[^/]+/(clientset|informers|listers))(/|$)`)

// ofController matches what the root package of an operator module must not depend on: an operator that vendors it
// needs topology and API types only, of whose dependencies structured-merge-diff's package value is one.
var ofController = regexp.MustCompile(`^(github\.com/(openshift/client-go|solonode/sno/patch)|k8s\.io/client-go|sigs\.k8s\.io/structured-merge-diff/v6/(fieldpath|merge|schema|typed))(/|$)`)

// files are those of every operator module (ARCHITECTURE.md).
var files = strings.Fields(`README.md doc.go example_test.go host.go mutants.yaml names.go
	decision/doc.go decision/names.go decision/inputs.go decision/checks.go decision/desired.go decision/observe.go decision/golden_test.go decision/testdata
	controller/doc.go controller/module.go controller/patcher.go controller/rbac.go config/rbac config/admission`)

// makesClusters matches what the suite for the CI of an operator must not depend on.
var makesClusters = regexp.MustCompile(`^(sigs\.k8s\.io/kind|github\.com/(coreos/ignition|google/go-containerregistry|CycloneDX))(/|$)`)

type goPackage struct {
	ImportPath string
	Deps       []string
	Module     struct{ Path string }
}

func checkBoundaries(ctx context.Context, r repo) error {
	out, err := workspace.Output(r.Command(ctx, ".", "go", append([]string{"list", "-deps", "-json=ImportPath,Deps,Module"}, r.patterns()...)...))
	if err != nil {
		return err
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return fmt.Errorf("read what go list prints: %w", err)
		}
		packages = append(packages, p)
	}
	var faults findings
	for _, m := range r.modules {
		for _, name := range files {
			if _, err := os.Stat(r.Path(m.Dir + "/" + name)); err != nil && slices.Equal(allowed[m.Dir], operators) {
				faults = append(faults, fmt.Sprintf("%s: lacks %s, which the other operator modules have", m.Dir, name))
			}
		}
		if allowed[m.Dir] != nil {
			faults = append(faults, boundaryFaults(m, packages)...)
		}
	}
	return faults.orNil()
}

func isVendored(dir string) bool {
	return dir == "topology" || dir == "patch" || slices.Equal(allowed[dir], operators)
}

func boundaryFaults(m workspace.Module, packages []goPackage) (faults findings) {
	edge := cmp.Or(edges[m.Dir], edges[""])
	for _, p := range packages {
		if p.Module.Path != m.File.Module.Mod.Path { // a module can be in the folder of another one
			continue
		}
		inner := strings.TrimPrefix(p.ImportPath+"/", p.Module.Path+"/")
		for _, dependency := range p.Deps {
			sibling, ours := strings.CutPrefix(dependency, workspace.ModulePrefix)
			sibling, _, _ = strings.Cut(sibling, "/")
			switch {
			case ours && sibling != m.Dir && !slices.Contains(allowed[m.Dir], sibling):
				faults = append(faults, fmt.Sprintf("%s: may depend on no other modules of the repository than %v, and depends on %s", p.ImportPath, allowed[m.Dir], dependency))
			case m.Dir == "conformance" && makesClusters.MatchString(dependency):
				faults = append(faults, fmt.Sprintf("%s: must make no cluster, and depends on %s", p.ImportPath, dependency))
			case slices.Equal(allowed[m.Dir], operators) && p.ImportPath == p.Module.Path && ofController.MatchString(dependency):
				faults = append(faults, fmt.Sprintf("%s: operators vendor it, and it depends on %s; that belongs in decision", p.ImportPath, dependency))
			case isVendored(m.Dir) && !edge.MatchString(inner) && impure.MatchString(dependency):
				faults = append(faults, fmt.Sprintf("%s: must be pure, and depends on %s", p.ImportPath, dependency))
			}
		}
	}
	for _, require := range m.File.Require { // also for tests only: it is a lower bound for who vendors the suite
		if m.Dir == "conformance" && makesClusters.MatchString(require.Mod.Path) {
			faults = append(faults, fmt.Sprintf("conformance/go.mod: requires %s, which only modules that make clusters need", require.Mod.Path))
		}
	}
	return faults
}
