// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnused uses a stand-in for deadcode, which tools/run starts.
func TestUnused(t *testing.T) {
	files := map[string]string{
		"go.work":   "go 1.26.0\n\nuse (\n\t./topology\n\t./cli\n)\n",
		"tools/run": "#!/bin/sh\n[ \"$*\" = \"${*#* ./hosts/}\" ] && echo github.com/solonode/sno/topology.unreached topology/topology.go || :\n",
		"hosts/go.mod": "module github.com/solonode/sno/hosts\n\ngo 1.26.0\n\nrequire github.com/solonode/sno/topology v0.0.0-00010101000000-000000000000\n\n" +
			"replace github.com/solonode/sno/topology => ../topology\n",
		"hosts/host.go":   "package main\n\nimport \"github.com/solonode/sno/topology\"\n\nfunc main() { topology.ByHost() }\n",
		"topology/go.mod": "module github.com/solonode/sno/topology\n\ngo 1.26.0\n",
		"topology/topology.go": `// Package topology is small.
package topology

import "fmt"

type (
	ByProgram  int
	ByDead     int
	Methoder   interface{ Method() int }
	Template   struct{}
	unexported struct{}
	Failure    struct{}
)

func (ByProgram) Method() int    { return int(first) }
func (ByProgram) String() string { return "" }
func (ByProgram) Nothing()       {}
func (Template) Text() string    { return "" }
func (unexported) Called()       {}
func (Failure) Error() string    { return "" }
func (Failure) Unwrap() error    { return nil }

const (
	first = iota
	Second
)

var (
	_        fmt.Stringer = ByDead(0)
	ByInside              = 1
	Variable              = ByInside
)

func (ByDead) String() string { return "" }

func New() error      { return Failure{} }
func Dead() ByDead    { return 0 }
func ByTest()         {}
func ByOtherTest()    { inside() }
func ByHost()         {}
func Generic[T any]() {}
func inside()         { ByOther() }
func ByOther()        {}
func unreached()      {}
func init()           { ByInit() }
func ByInit()         {}
`,
		"topology/topology_test.go": "package topology\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { ByTest(); unreached(); _ = unexported{}; _ = Second; _ = Template{} }\n",
		"cli/go.mod": "module github.com/solonode/sno/cli\n\ngo 1.26.0\n\nrequire github.com/solonode/sno/topology v0.0.0-00010101000000-000000000000\n\n" +
			"replace github.com/solonode/sno/topology => ../topology\n",
		"cli/main.go": "package main\n\nimport \"github.com/solonode/sno/topology\"\n\n" +
			"func main() { _ = topology.Methoder(topology.ByProgram(1)); topology.Generic[int](); _ = topology.New(); println(topology.Variable) }\n",
		"cli/main_test.go": "package main\n\nimport (\n\t\"testing\"\n\n\t\"github.com/solonode/sno/topology\"\n)\n\nfunc TestIt(t *testing.T) { topology.ByOtherTest() }\n",
		"hack/unused.yaml": "- {why: called by a template, names: [topology.Temp*]}\n- {why: gone, names: [topology.Gone]}\n- {names: [topology.Second]}\n",
	}
	ws := repository(t, files)
	if err := os.Chmod(ws.Path("tools/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	unused := func(name string) string {
		return "topology/topology.go: topology." + name + " has no user but tests of its own package; delete it, or add a reason to hack/unused.yaml"
	}
	want := []string{
		"hack/unused.yaml: topology.Gone has a user or is gone; delete the entry",
		"hack/unused.yaml: has no reason for topology.Second",
		unused("ByDead"), unused("ByDead.String"), unused("ByProgram.Nothing"), unused("ByTest"), unused("Dead"), unused("unreached"),
	}
	err := checkUnused(t.Context(), ws, io.Discard)
	if err == nil {
		t.Fatal("found nothing")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if err := ws.Focus("cli"); err != nil {
		t.Fatal(err)
	}
	if err := checkUnused(t.Context(), ws, io.Discard); err != nil {
		t.Errorf("for one module: %v", err)
	}
}
