// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/hack/workspace"
)

func module(t *testing.T, dir string, requires ...string) workspace.Module {
	t.Helper()
	text := "module " + workspace.ModulePrefix + dir + "\n\ngo 1.25.0\n"
	for _, require := range requires {
		text += "\nrequire " + require + "\n"
	}
	file, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return workspace.Module{Dir: dir, File: file}
}

func TestImpureDependencies(t *testing.T) {
	const runtime = "sigs.k8s.io/controller-runtime/pkg/client"
	tests := map[string]struct {
		dir, pkg string
		deps     []string
		want     bool
	}{
		"root of an operator module":        {"ingress", "", []string{runtime}, true},
		"sub-package of an operator module": {"ingress", "/names", []string{"k8s.io/client-go/tools/cache"}, true},
		"controller":                        {"ingress", "/controller", []string{runtime}, false},
		"below controller":                  {"ingress", "/controller/watch", []string{runtime}, false},
		"name that only begins alike":       {"ingress", "/controllers", []string{runtime}, true},
		"command":                           {"ingress", "/cmd/ingress-controller", []string{runtime}, false},
		"root of patch":                     {"patch", "", []string{"net/http", runtime}, true},
		"pure part of patch":                {"patch", "/ownership", []string{"k8s.io/client-go/dynamic"}, true},
		"edge of patch":                     {"patch", "/apply", []string{runtime}, false},
		"controllers of patch":              {"patch", "/controller", []string{runtime}, false},
		"apply configurations":              {"ingress", "", []string{"k8s.io/client-go/applyconfigurations/core/v1", "net/http"}, false},
		"what those import":                 {"ingress", "", []string{"k8s.io/client-go/rest", "k8s.io/client-go/discovery", "k8s.io/client-go/tools/metrics"}, false},
		"openshift informers":               {"ingress", "", []string{"github.com/openshift/client-go/operator/informers/externalversions"}, true},
		"openshift apply configurations":    {"ingress", "", []string{"github.com/openshift/client-go/operator/applyconfigurations/operator/v1"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := module(t, test.dir)
			packages := []goPackage{
				{ImportPath: runtime, Deps: []string{"k8s.io/client-go/rest"}}, // of another repository
				{ImportPath: m.File.Module.Mod.Path + test.pkg, Deps: test.deps},
			}
			if faults := impureDependencies(m, packages); (len(faults) > 0) != test.want {
				t.Errorf("got %v, want a fault: %t", faults, test.want)
			}
		})
	}
}

func TestPackagesRow(t *testing.T) {
	packages := []goPackage{
		{ImportPath: "fmt", Standard: true},
		{ImportPath: "vendor/golang.org/x/net/idna", Standard: true},
		{ImportPath: "github.com/solonode/sno/patch"},
		{ImportPath: "k8s.io/client-go/rest"},
		{ImportPath: "github.com/solonode/sno/ingress/controller", Deps: []string{"k8s.io/client-go/rest", "k8s.io/client-go/tools/cache"}},
		{ImportPath: "github.com/solonode/sno/ingress", Deps: []string{"fmt", "vendor/golang.org/x/net/idna", "github.com/solonode/sno/patch",
			"k8s.io/client-go/rest", "k8s.io/client-go/applyconfigurations/meta/v1", "k8s.io/api/core/v1"}},
	}
	if got, want := packagesRow(module(t, "ingress"), packages), "| ingress | 3 | 1 |"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPackagesFindings(t *testing.T) {
	const head = "# Vendoring\n\n" + packagesBegin + "\n| module | packages | client |\n|---|--:|--:|\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"as it is":   {text: head + "| ingress | 3 | 1 |\n" + packagesEnd + "\n"},
		"no marks":   {text: "# Vendoring\n", want: []string{"docs/vendoring.md: needs <!-- packages --> and <!-- end of packages --> around its numbers of packages"}},
		"not listed": {text: head + packagesEnd + "\n", want: []string{"docs/vendoring.md: must have the row | ingress | 3 | 1 |"}},
		"other number": {text: head + "| ingress | 4 | 1 |\n" + packagesEnd + "\n", want: []string{
			"docs/vendoring.md: must have the row | ingress | 3 | 1 |", "docs/vendoring.md: has the row | ingress | 4 | 1 |, which is wrong"}},
		"module is gone": {text: head + "| ingress | 3 | 1 |\n| egress | 1 | 0 |\n" + packagesEnd + "\n", want: []string{
			"docs/vendoring.md: has the row | egress | 1 | 0 |, which is wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := sample()
			files[packagesFile] = test.text
			got, err := packagesFaults(repository(t, files), []string{"| ingress | 3 | 1 |"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopologyFindings(t *testing.T) {
	m := module(t, "topology", "github.com/openshift/api v0.1.0", "k8s.io/apimachinery v0.35.2", "github.com/google/go-cmp v0.7.0",
		"k8s.io/utils v0.1.0 // indirect", "k8s.io/api v0.35.2")
	packages := []goPackage{
		{ImportPath: "strings", Standard: true},
		{ImportPath: "k8s.io/api/core/v1"},
		{ImportPath: "github.com/solonode/sno/topology", Imports: []string{"strings", "github.com/openshift/api/config/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/api/core/v1"}},
		{ImportPath: "github.com/solonode/sno/topology/x", Imports: []string{"github.com/solonode/sno/topology", "github.com/google/go-cmp/cmp"}},
	}
	want := []string{
		"topology/go.mod: may not require k8s.io/api directly; allowed: " + strings.Join(topologyRequires, ", "),
		"github.com/solonode/sno/topology: may not import k8s.io/api/core/v1",
		"github.com/solonode/sno/topology/x: may not import github.com/google/go-cmp/cmp",
	}
	if diff := cmp.Diff(want, topologyFaults(m, packages)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestForeignDependencies(t *testing.T) {
	const prefix = "github.com/solonode/sno/"
	for name, test := range map[string]struct {
		dir, dependency string
		want            bool
	}{
		"conformance on itself":             {dir: "conformance", dependency: prefix + "conformance/report"},
		"conformance on topology":           {dir: "conformance", dependency: prefix + "topology"},
		"conformance on an operator module": {dir: "conformance", dependency: prefix + "ingress", want: true},
		"conformance on patch":              {dir: "conformance", dependency: prefix + "patch/patchtest", want: true},
		"conformance on clusters":           {dir: "conformance", dependency: prefix + "testcluster/embedded", want: true},
		"conformance on kind":               {dir: "conformance", dependency: "sigs.k8s.io/kind/pkg/cluster", want: true},
		"conformance on Ignition":           {dir: "conformance", dependency: "github.com/coreos/ignition/v2/config", want: true},
		"conformance on images":             {dir: "conformance", dependency: "github.com/google/go-containerregistry/pkg/v1", want: true},
		"conformance on SBOMs":              {dir: "conformance", dependency: "github.com/CycloneDX/cyclonedx-go", want: true},
		"conformance on a client":           {dir: "conformance", dependency: "sigs.k8s.io/controller-runtime/pkg/client"},
		"a name that begins alike":          {dir: "conformance", dependency: "sigs.k8s.io/kindred"},
		"clusters on kind":                  {dir: "testcluster", dependency: "sigs.k8s.io/kind/pkg/cluster"},
		"clusters on an operator module":    {dir: "testcluster", dependency: prefix + "machineconfig", want: true},
		"install on render":                 {dir: "install", dependency: prefix + "render/command"},
		"install on an operator module":     {dir: "install", dependency: prefix + "etcdguard", want: true},
		"render on install":                 {dir: "render", dependency: prefix + "install/node", want: true},
		"clusters on the suite":             {dir: "testcluster", dependency: prefix + "conformance/checks", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			packages := []goPackage{{ImportPath: "fmt", Standard: true}, {ImportPath: test.dependency}}
			if faults := foreignDependencies(module(t, test.dir), packages); (len(faults) > 0) != test.want {
				t.Errorf("got %v, want a fault: %t", faults, test.want)
			}
		})
	}
}

func TestClusterRequirements(t *testing.T) {
	m := module(t, "examples/hosts/one", "sigs.k8s.io/controller-runtime v0.24.1", "sigs.k8s.io/kind v0.33.0 // indirect")
	want := []string{"examples/hosts/one/go.mod: requires sigs.k8s.io/kind, which only modules that make clusters need"}
	if diff := cmp.Diff(want, clusterRequirements(m)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestIsVendored(t *testing.T) {
	for dir, want := range map[string]bool{
		"topology": true, "patch": true, "ingress": true, "etcdguard": true,
		"e2e": false, "conformance": false, "testcluster": false, "testcluster/kube": false, "hack": false, "cli": false, "examples/hosts/ingress-operator": false,
	} {
		if got := isVendored(workspace.Module{Dir: dir}); got != want {
			t.Errorf("isVendored(%s) = %t, want %t", dir, got, want)
		}
	}
}
