// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/matrix"
	"github.com/solonode/sno/testcluster/scenario"
)

// artifacts is the folder for the analysis of failures.
const artifacts = "artifacts"

// child runs the suite on one cluster and writes the report. Failed checks are not an error.
func child(ctx context.Context, o options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// The parent's end of the pipe closes with its process.
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	options := embeddedtarget.Options{
		Scenario: o.scenarios[0], Variant: o.variant, Operators: o.operators, RealMinReadySeconds: o.realMinReady, Keep: o.keep, Progress: os.Stderr,
		Times: cluster.SimulatedTimes(),
	}
	if o.realMinReady || len(o.operators.Modules()) > 0 {
		// The router is rolled out several times after a change of the topology, by a given operator at its own speed.
		options.Times.Converge = cluster.RealTimes().Converge
	}
	target, err := embeddedtarget.Start(ctx, options)
	if err != nil {
		return err
	}
	defer target.Stop()
	fmt.Fprintf(os.Stderr, "%s: the cluster has settled\n", time.Now().Format(time.TimeOnly))
	run, err := runner.New(ctx, target, o.selection(o.scenarios[0]))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close(ctx)) }()
	found, err := check(ctx, run)
	if err != nil {
		return err
	}
	if found.Counts[report.Failed]+found.Counts[report.Inconclusive] > 0 {
		if err := run.Collect(ctx, filepath.Join(o.out, artifacts)); err != nil {
			fmt.Fprintln(os.Stderr, "The artifacts are not complete:", err)
		}
	}
	return writeFile(filepath.Join(o.out, matrix.ReportFile), func(w io.Writer) error { return report.WriteJSON(w, found) })
}

// check runs every check.
func check(ctx context.Context, run *runner.Runner) (report.Report, error) {
	if err := run.Start(ctx); err != nil {
		return report.Report{}, err
	}
	for _, c := range catalogue.All() {
		result, err := run.Result(ctx, c.ID)
		if err != nil {
			return report.Report{}, err
		}
		fmt.Fprintf(os.Stderr, "%s  %s  %-13s %6.1f s  %s\n", time.Now().Format(time.TimeOnly), result.ID, result.Status, result.Seconds, result.Title)
	}
	return run.Report(), nil
}

// allModules returns the modules with checks, in the catalogue's order.
func allModules() []string {
	var names []string
	for _, c := range catalogue.All() {
		if !slices.Contains(names, c.Module) {
			names = append(names, c.Module)
		}
	}
	return names
}

func allScenarios() []string {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	return names
}
