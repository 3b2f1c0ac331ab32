package main

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/matrix"
)

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"more"}, {"-variant=tomorrow"}, {"-scenarios=nowhere"}, {"-scenarios=ha,"}, {"-tiers=wild"}, {"-modules=wild"}, {"-parallel=-1"}, {"-limit=0s"},
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
	if o, err := parse(nil, io.Discard); err != nil || !slices.Equal(o.scenarios, allScenarios()) || !slices.Equal(o.tiers, checks.Tiers()) {
		t.Errorf("all: %+v, %v", o, err)
	}
}

// A run that is lost has every check of the catalogue, failed.
func TestLost(t *testing.T) {
	r := options{variant: "sno"}.lost("ha", "it crashed")
	if len(r.Results) != len(checks.Catalogue()) || r.Counts[report.Failed] != len(r.Results) || r.Description == "" {
		t.Errorf("%d results, %v, %q", len(r.Results), r.Counts, r.Description)
	}
	if err := report.Verdict([]report.Report{r}); !errors.Is(err, report.ErrFailed) {
		t.Errorf("the verdict is %v", err)
	}
}

// What is no overlay is told before anything starts.
func TestNoOverlay(t *testing.T) {
	if err := (options{overlay: filepath.Join(t.TempDir(), "gone.json")}).laid(); !errors.Is(err, errInput) {
		t.Errorf("no file: %v", err)
	}
}

// What must be red today names checks and clusters that there are.
func TestBaselineFile(t *testing.T) {
	if _, err := (options{expect: filepath.Join("..", "..", "matrix", "baseline.yaml")}).excuses(); err != nil {
		t.Error(err)
	}
	if _, err := (options{expect: "nothing.yaml"}).excuses(); !errors.Is(err, errInput) || !errors.Is(err, matrix.ErrExpectations) {
		t.Errorf("no file: %v", err)
	}
}
