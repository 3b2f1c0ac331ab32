// SPDX-License-Identifier: Apache-2.0

// Command sno-conformance runs the conformance suite on an embedded cluster for every scenario and writes one report of
// all. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	exitPassed, exitFailed, exitBadInput, exitInterrupted = 0, 1, 2, 130
)

// errInput means that the command line is invalid.
var errInput = errors.New("bad input")

// options are the command line.
type options struct {
	variant   embeddedtarget.Variant
	scenarios []string
	// disrupted are the clusters with the tier disruptive.
	disrupted                   []string
	tiers                       []catalogue.Tier
	modules                     []string
	parallel                    int
	limit                       time.Duration
	out, before, expect, waiver string
	keep, child, realMinReady   bool
	operatorFlags               harness.OperatorFlags
	operators                   harness.Operators
}

func main() { os.Exit(run()) }

func run() int {
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPassed
	case err != nil:
		fmt.Fprintln(os.Stderr, "sno-conformance:", err)
		return exitBadInput
	}
	ctrl.SetLogger(logr.Discard())
	// The API server warns about the node role of OpenShift.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.child {
		programs.SkipUpToDateChecks() // the parent has built them
		err = child(ctx, o)
	} else {
		err = parent(ctx, o)
	}
	switch {
	case err == nil:
		return exitPassed
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "Interrupted")
		return exitInterrupted
	case errors.Is(err, errInput):
		fmt.Fprintln(os.Stderr, "sno-conformance:", err)
		return exitBadInput
	default:
		fmt.Fprintln(os.Stderr, "sno-conformance:", err)
		return exitFailed
	}
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{variant: embeddedtarget.SNO}
	var scenarios, disrupt, tiers, modules string
	flags := flag.NewFlagSet("sno-conformance", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar((*string)(&o.variant), "variant", string(o.variant), "Operators of the clusters: sno for the modules, vendored for operators that vendor them and no controllers, or baseline for stand-ins for stock operators.")
	flags.StringVar(&scenarios, "scenarios", "", "Names of clusters, separated by commas. Empty: all.")
	flags.StringVar(&disrupt, "disrupt", "", "Names of the clusters that also have the tier disruptive, if it is in -tiers. Empty: all.")
	flags.StringVar(&tiers, "tiers", "", "static, scheduled, disruptive, separated by commas. Empty: all.")
	flags.StringVar(&modules, "modules", "", "Modules whose checks to run, separated by commas. Empty: all.")
	flags.IntVar(&o.parallel, "parallel", 0, "Clusters in parallel. 0: as many as the machine has room for.")
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "Limit for one cluster.")
	flags.StringVar(&o.out, "out", "", "Folder for the reports, and for a log of each cluster. Empty: a new one.")
	flags.StringVar(&o.before, "before", "", "Report of an earlier run to compare with, if the file exists.")
	flags.StringVar(&o.expect, "expect", "", "File with the checks that must fail. The run succeeds if exactly these fail.")
	flags.StringVar(&o.waiver, "waivers", "", "File with waivers: known failures with an expiry date.")
	flags.BoolVar(&o.keep, "keep", false, "Keep the clusters' folders.")
	flags.BoolVar(&o.realMinReady, "real-min-ready", false, "A router counts as available after 30 seconds as on a real cluster, not after one. A cluster takes twice as long.")
	o.operatorFlags.Bind(flags)
	flags.BoolVar(&o.child, "child", false, "Internal: run the only scenario, and write its report to the folder.")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // describes the fault
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q", errInput, flags.Arg(0))
	}
	var err error
	if o.operators, err = o.operatorFlags.Read(); err != nil {
		return o, fmt.Errorf("%w: %w", errInput, err)
	}
	if _, err := o.variant.Programs(o.operators); err != nil {
		return o, fmt.Errorf("%w: -variant: %w", errInput, err)
	}
	for _, s := range scenario.All() {
		o.scenarios = append(o.scenarios, s.Name)
	}
	if scenarios != "" {
		chosen, err := choose(strings.Split(scenarios, ","), o.scenarios)
		if err != nil {
			return o, fmt.Errorf("%w: -scenarios: %w", errInput, err)
		}
		o.scenarios = chosen
	}
	o.disrupted = o.scenarios
	if disrupt != "" {
		chosen, err := choose(strings.Split(disrupt, ","), o.scenarios)
		if err != nil {
			return o, fmt.Errorf("%w: -disrupt: %w", errInput, err)
		}
		o.disrupted = chosen
	}
	o.tiers = catalogue.Tiers()
	if tiers != "" {
		var named []catalogue.Tier
		for _, t := range strings.Split(tiers, ",") {
			named = append(named, catalogue.Tier(t))
		}
		chosen, err := choose(named, o.tiers)
		if err != nil {
			return o, fmt.Errorf("%w: -tiers: %w", errInput, err)
		}
		o.tiers = chosen
	}
	if modules != "" {
		chosen, err := choose(strings.Split(modules, ","), allModules())
		if err != nil {
			return o, fmt.Errorf("%w: -modules: %w", errInput, err)
		}
		o.modules = chosen
	}
	if o.parallel < 0 || o.limit <= 0 {
		return o, fmt.Errorf("%w: -parallel %d, -limit %s: want 0 or more, and more than 0", errInput, o.parallel, o.limit)
	}
	return o, nil
}

// choose returns the named values in the order of all.
func choose[T ~string](named, all []T) ([]T, error) {
	for _, name := range named {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%q is none of %v", name, all)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(named, one) }), nil
}

// selection returns the checks of a cluster.
func (o options) selection(name string) runner.Selection {
	return runner.Selection{Tiers: o.tiersOf(name), Modules: o.modules}
}

// lost returns the report of a cluster without one.
func (o options) lost(name string, status report.Status, reason string) report.Report {
	r := report.Report{Scenario: name, Variant: string(o.variant), Provider: embeddedtarget.Provider, Started: time.Now().UTC()}
	if s, err := scenario.Lookup(name); err == nil {
		r.Description = s.Description
	}
	// The variant and the name are valid.
	r.Operators, _ = o.variant.Operators(name, o.operators)
	r.Results = runner.Unfinished(catalogue.All(), o.selection(name), status, reason)
	r.Count()
	return r
}

// folder returns the folder of the reports.
func (o options) folder() (string, error) {
	if o.out == "" {
		return os.MkdirTemp("", "sno-conformance-") //nolint:wrapcheck // describes the fault
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", fmt.Errorf("%w: -out: %w", errInput, err)
	}
	return filepath.Abs(o.out) //nolint:wrapcheck // describes the fault
}
