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
		"no controller folder in patch":     {"patch", "/controller", []string{runtime}, true},
		"apply configurations":              {"ingress", "", []string{"k8s.io/client-go/applyconfigurations/core/v1", "net/http"}, false},
		"what those bring in":               {"ingress", "", []string{"k8s.io/client-go/rest", "k8s.io/client-go/discovery", "k8s.io/client-go/tools/metrics"}, false},
		"openshift informers":               {"ingress", "", []string{"github.com/openshift/client-go/operator/informers/externalversions"}, true},
		"openshift apply configurations":    {"ingress", "", []string{"github.com/openshift/client-go/operator/applyconfigurations/operator/v1"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := module(t, test.dir)
			packages := []goPackage{
				{ImportPath: runtime, Deps: []string{"k8s.io/client-go/rest"}}, // not ours to judge
				{ImportPath: m.File.Module.Mod.Path + test.pkg, Deps: test.deps},
			}
			if faults := impureDependencies(m, packages); (len(faults) > 0) != test.want {
				t.Errorf("got %v, want a fault: %t", faults, test.want)
			}
		})
	}
}

func TestTopologyFaults(t *testing.T) {
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

func TestIsVendored(t *testing.T) {
	for dir, want := range map[string]bool{
		"topology": true, "patch": true, "ingress": true, "etcdguard": true,
		"e2e": false, "e2e/kube": false, "hack": false, "cli": false, "examples/hosts/ingress-operator": false,
	} {
		if got := isVendored(workspace.Module{Dir: dir}); got != want {
			t.Errorf("isVendored(%s) = %t, want %t", dir, got, want)
		}
	}
}
