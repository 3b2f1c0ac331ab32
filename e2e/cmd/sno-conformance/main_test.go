// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/matrix"
)

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"more"}, {"-variant=tomorrow"}, {"-scenarios=nowhere"}, {"-scenarios=ha,"}, {"-tiers=wild"}, {"-modules=wild"}, {"-parallel=-1"}, {"-limit=0s"}, {"-some=-1"}, {"-disrupt=-1"},
		{"-operator=ingress"}, {"-operator=dns=sleep 1"}, {"-operator=ingress=sno-such-operator"}, {"-operator-crds=nowhere"},
	} {
		if _, err := parse(args, io.Discard); !errors.Is(err, errInput) {
			t.Errorf("%v: %v", args, err)
		}
	}
	o, err := parse([]string{"-scenarios=ha,none-sno", "-tiers=disruptive,static", "-modules=console,ingress"}, io.Discard)
	if err != nil || !slices.Equal(o.scenarios, []string{"none-sno", "ha"}) || !slices.Equal(o.tiers, []checks.Tier{checks.Static, checks.Disruptive}) {
		t.Errorf("chosen: %v, %v, %v", o.scenarios, o.tiers, err)
	}
	if !slices.Equal(o.modules, []string{"ingress", "console"}) {
		t.Errorf("modules: %v", o.modules)
	}
	// A child gets the same operators.
	o, err = parse([]string{"--operator=etcd=sleep 1"}, io.Discard)
	if err == nil {
		o, err = parse(o.operatorFlags.Arguments(), io.Discard)
	}
	if err != nil || !slices.Equal(o.operators.Modules(), []harness.Module{harness.EtcdGuard}) {
		t.Errorf("operators: %v, %v", o.operators.Modules(), err)
	}
	if o, err := parse(nil, io.Discard); err != nil || !slices.Equal(o.scenarios, allScenarios()) || !slices.Equal(o.tiers, checks.Tiers()) {
		t.Errorf("all: %+v, %v", o, err)
	}
}

// The report of a lost run contains every check of the catalogue, failed.
func TestLost(t *testing.T) {
	r := options{variant: "sno"}.lost("ha", "it crashed")
	if len(r.Results) != len(checks.Catalogue()) || r.Counts[report.Failed] != len(r.Results) || r.Description == "" {
		t.Errorf("%d results, %v, %q", len(r.Results), r.Counts, r.Description)
	}
	if i := slices.IndexFunc(r.Operators, func(o report.Operator) bool { return o.Module == "ingress" && o.StandIn }); i < 0 {
		t.Errorf("operators: %+v", r.Operators)
	}
	if err := report.Verdict([]report.Report{r}); !errors.Is(err, report.ErrFailed) {
		t.Errorf("the result is %v", err)
	}
}

// An invalid overlay is reported before anything starts.
func TestNoOverlay(t *testing.T) {
	if err := (options{overlay: filepath.Join(t.TempDir(), "gone.json")}).applyOverlay(); !errors.Is(err, errInput) {
		t.Errorf("no file: %v", err)
	}
}

// The files of expectations name existing checks and clusters.
func TestExpectationFiles(t *testing.T) {
	for _, name := range []string{"baseline.yaml", "vendored.yaml"} {
		if _, err := (options{expect: filepath.Join("..", "..", "matrix", name)}).inputs(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (options{expect: "nothing.yaml"}).inputs(); !errors.Is(err, errInput) || !errors.Is(err, matrix.ErrExpectations) {
		t.Errorf("no file: %v", err)
	}
	if e, err := (options{before: filepath.Join(t.TempDir(), "report.yaml")}).inputs(); err != nil || len(e.before) > 0 {
		t.Errorf("no earlier report: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "report.yaml")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (options{before: broken}).inputs(); !errors.Is(err, errInput) {
		t.Errorf("an earlier report that cannot be read: %v", err)
	}
}

// Successive starts select all clusters, and disrupt all.
func TestSampled(t *testing.T) {
	seen, disrupted := map[string]bool{}, map[string]bool{}
	for _, start := range []string{"7", "8", "9"} {
		o, err := parse([]string{"-some=5", "-disrupt=2", "-start=" + start}, io.Discard)
		if err != nil || len(o.scenarios) != 5 || len(o.disrupted()) != 2 || !strings.Contains(o.sampled(o.disrupted()), "5 of 13, start "+start) {
			t.Fatalf("start %s: %v, %v, %q, %v", start, o.scenarios, o.disrupted(), o.sampled(o.disrupted()), err)
		}
		for _, name := range o.scenarios {
			seen[name] = true
		}
	}
	for start := range 7 {
		o, err := parse([]string{"-disrupt=2", fmt.Sprint("-start=", start)}, io.Discard)
		if err != nil || len(o.scenarios) != 13 {
			t.Fatalf("%v, %v", o.scenarios, err)
		}
		for _, name := range o.disrupted() {
			disrupted[name] = true
		}
	}
	if len(seen) != 13 || len(disrupted) != 13 {
		t.Errorf("of 13 clusters, %d were chosen and %d disrupted", len(seen), len(disrupted))
	}
	if o, err := parse([]string{"-tiers=static", "-disrupt=2"}, io.Discard); err != nil || len(o.disrupted()) > 0 || o.sampled(nil) != "" {
		t.Errorf("without the tier: %v, %v", o.disrupted(), err)
	}
}
