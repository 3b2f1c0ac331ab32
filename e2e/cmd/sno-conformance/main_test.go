// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/matrix"
)

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"more"}, {"-variant=tomorrow"}, {"-scenarios=nowhere"}, {"-scenarios=ha,"}, {"-tiers=wild"}, {"-modules=wild"}, {"-parallel=-1"}, {"-limit=0s"}, {"-disrupt=nowhere"}, {"-scenarios=ha", "-disrupt=none-sno"},
		{"-operator=ingress"}, {"-operator=dns=sleep 1"}, {"-operator=ingress=sno-such-operator"}, {"-operator-crds=nowhere"}, {"-operator-objects=nowhere"},
	} {
		if _, err := parse(args, io.Discard); !errors.Is(err, errInput) {
			t.Errorf("%v: %v", args, err)
		}
	}
	o, err := parse([]string{"-scenarios=ha,none-sno", "-tiers=disruptive,static", "-modules=console,ingress"}, io.Discard)
	if err != nil || !slices.Equal(o.scenarios, []string{"none-sno", "ha"}) || !slices.Equal(o.tiers, []catalogue.Tier{catalogue.Static, catalogue.Disruptive}) {
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
	if o, err := parse(nil, io.Discard); err != nil || !slices.Equal(o.scenarios, allScenarios()) || !slices.Equal(o.tiers, catalogue.Tiers()) {
		t.Errorf("all: %+v, %v", o, err)
	}
}

// The report of a lost run contains every check of the catalogue. Those that were to run have failed.
func TestLost(t *testing.T) {
	lost := func(flags ...string) report.Report {
		o, err := parse(flags, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return o.lost("ha", report.Failed, "it crashed")
	}
	r := lost()
	if len(r.Results) != len(catalogue.All()) || r.Counts[report.Failed] != len(r.Results) || r.Description == "" {
		t.Errorf("%d results, %v, %q", len(r.Results), r.Counts, r.Description)
	}
	if i := slices.IndexFunc(r.Operators, func(o report.Operator) bool { return o.Module == "ingress" && o.StandIn }); i < 0 {
		t.Errorf("operators: %+v", r.Operators)
	}
	if err := report.Verdict([]report.Report{r}); !errors.Is(err, report.ErrFailed) {
		t.Errorf("the result is %v", err)
	}
	for _, result := range lost("-modules=auth,approver", "-disrupt=none-sno").Results {
		selected := (result.Module == "auth" || result.Module == "approver") && result.Tier != string(catalogue.Disruptive)
		if (result.Status == report.Failed) != selected || !selected && (result.Status != report.Skipped || result.Reason == "") {
			t.Errorf("%s of %s, %s, is %s: %s", result.ID, result.Module, result.Tier, result.Status, result.Reason)
		}
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

// The tier disruptive is left out on clusters that -disrupt does not name, and on none without it.
func TestTiersOf(t *testing.T) {
	two := []catalogue.Tier{catalogue.Static, catalogue.Scheduled}
	for flag, want := range map[string][]catalogue.Tier{"-disrupt=ha": two, "-disrupt=ha,compact": catalogue.Tiers(), "-disrupt=": catalogue.Tiers()} {
		o, err := parse([]string{flag}, io.Discard)
		if err != nil || !slices.Equal(o.tiersOf("compact"), want) || !slices.Equal(o.tiersOf("ha"), catalogue.Tiers()) {
			t.Errorf("%s: compact has %v, want %v, and ha %v; %v", flag, o.tiersOf("compact"), want, o.tiersOf("ha"), err)
		}
	}
}
