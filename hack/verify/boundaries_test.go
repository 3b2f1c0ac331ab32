// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/solonode/sno/hack/workspace"
)

func module(t *testing.T, dir, lines string) workspace.Module {
	t.Helper()
	file, err := modfile.Parse("go.mod", []byte("module "+workspace.ModulePrefix+dir+"\n\ngo 1.25.0\n"+lines), nil)
	if err != nil {
		t.Fatal(err)
	}
	return workspace.Module{Dir: dir, File: file}
}

func TestBoundaries(t *testing.T) {
	const (
		runtime = "sigs.k8s.io/controller-runtime/pkg/client"
		prefix  = workspace.ModulePrefix
	)
	for _, test := range []struct {
		dir, inner, dependency string
		want                   bool
	}{
		{"ingress", "", runtime, true},
		{"ingress", "/names", "k8s.io/client-go/tools/cache", true},
		{"ingress", "/controller", runtime, false},
		{"ingress", "/controller/watch", runtime, false},
		{"ingress", "/controllers", runtime, true},
		{"ingress", "/cmd/ingress-controller", runtime, false},
		{"patch", "", runtime, true},
		{"patch", "/ownership", "k8s.io/client-go/dynamic", true},
		{"patch", "/apply", runtime, false},
		{"ingress", "", "k8s.io/client-go/applyconfigurations/core/v1", true},
		{"ingress", "/decision", "k8s.io/client-go/applyconfigurations/core/v1", false},
		{"ingress", "/decision", "k8s.io/client-go/rest", false}, // what those import
		{"ingress", "", "sigs.k8s.io/structured-merge-diff/v6/fieldpath", true},
		{"ingress", "", "sigs.k8s.io/structured-merge-diff/v6/value", false},
		{"ingress", "", "github.com/openshift/client-go/operator/informers/externalversions", true},
		{"ingress", "/decision", "github.com/openshift/client-go/operator/applyconfigurations/operator/v1", false},
		{"ingress", "", prefix + "patch/ownership", true},
		{"ingress", "/controller", prefix + "console", true},
		{"topology", "", prefix + "patch", true},
		{"conformance", "/suites", prefix + "conformance/report", false},
		{"conformance", "/suites", prefix + "topology", false},
		{"conformance", "/suites", prefix + "testcluster/apiserver", true},
		{"conformance", "/suites", "sigs.k8s.io/kind/pkg/cluster", true},
		{"conformance", "/suites", "sigs.k8s.io/kindred", false},
		{"testcluster", "/embedded", "sigs.k8s.io/kind/pkg/cluster", false},
		{"testcluster", "/embedded", prefix + "machineconfig", true},
		{"install", "/node", prefix + "render/command", false},
		{"install", "/node", prefix + "etcdguard", true},
	} {
		own := goPackage{ImportPath: prefix + test.dir + test.inner, Deps: []string{"fmt", test.dependency}}
		own.Module.Path = prefix + test.dir
		nested := goPackage{ImportPath: prefix + test.dir + "/nested", Deps: []string{prefix + "etcdguard"}}
		nested.Module.Path = nested.ImportPath
		packages := []goPackage{{ImportPath: test.dependency}, own, nested}
		faults := boundaryFaults(module(t, test.dir, ""), packages)
		if len(faults) > 0 != test.want {
			t.Errorf("%s%s on %s: got %v, want a fault: %t", test.dir, test.inner, test.dependency, faults, test.want)
		}
	}
	if faults := boundaryFaults(module(t, "conformance", "require sigs.k8s.io/kind v0.33.0\n"), nil); len(faults) != 1 {
		t.Errorf("requirement of kind: got %v", faults)
	}
}
