// SPDX-License-Identifier: Apache-2.0

// Command mutants tries the mutants of the modules' mutants.yaml and fails if a test does not detect one.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/solonode/sno/hack/mutants"
	"github.com/solonode/sno/hack/workspace"
)

type options struct {
	parallel int
	only     string
	fresh    bool
	budget   time.Duration
	order    uint64

	suite, tiers, out string
}

func main() {
	var o options
	// One more than the processors: many tests wait for an API server.
	flag.IntVar(&o.parallel, "parallel", runtime.NumCPU()+1, "how many mutants to try at the same time")
	flag.StringVar(&o.only, "run", "", "try only the mutants whose module/name matches this regular expression")
	flag.BoolVar(&o.fresh, "fresh", false, "also try mutants that an earlier run caught on the same bytes")
	flag.DurationVar(&o.budget, "budget", 0, "start no mutant after this time; the rest is counted and no failure")
	flag.Uint64Var(&o.order, "order", rand.Uint64(), "the number that decides the order of the trials; random by default")
	flag.StringVar(&o.suite, "suite", "", "conformance: run the conformance suite on clusters with each mutant instead of its test, and print which check detects it")
	flag.StringVar(&o.tiers, "tiers", "static,scheduled", "with -suite: tiers of the suite, separated by commas")
	flag.StringVar(&o.out, "out", "", "with -suite: another file for the table")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutants [-parallel N] [-run REGEXP] [-fresh] [-budget DURATION] [-order N] [-suite conformance [-tiers NAMES] [-out FILE]] [MODULE...]   (all modules that have a mutants.yaml)")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, names []string) (err error) {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if o.suite != "" && o.suite != "conformance" {
		return fmt.Errorf("-suite: there is no suite %q, only conformance", o.suite)
	}
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	modules, err := ws.Select(names...)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		for _, m := range ws.Modules {
			if _, err := os.Stat(ws.Path(m.Dir + "/" + mutants.FileName)); err == nil {
				modules = append(modules, m)
			}
		}
	}
	known, err := mutants.CacheFile()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sno-mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	fmt.Fprintf(os.Stderr, "order of the trials: -order=%d\n", o.order)
	runner := &mutants.Runner{
		Workspace: ws, Scratch: scratch, Parallel: o.parallel, Only: pattern, Progress: os.Stderr,
		Cache: mutants.OpenCache(known), Fresh: o.fresh, Budget: o.budget, Order: o.order,
	}
	if o.suite != "" {
		return conformance(ctx, runner, modules, o)
	}
	results, err := runner.Run(ctx, modules)
	if err != nil {
		return err
	}
	failed, err := mutants.Table(os.Stdout, results)
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", failed, len(results))
	}
	return nil
}

// conformance prints which checks detect the mutants. Undetected ones are no failure.
func conformance(ctx context.Context, runner *mutants.Runner, modules []workspace.Module, o options) error {
	suite := mutants.Suite{Runner: runner, Tiers: o.tiers}
	results, err := suite.Run(ctx, modules)
	if len(results) == 0 {
		return err
	}
	var table bytes.Buffer
	err = errors.Join(err, mutants.SuiteTable(&table, results))
	if _, failed := os.Stdout.Write(table.Bytes()); failed != nil {
		err = errors.Join(err, failed)
	}
	if o.out != "" {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(o.out), 0o755), os.WriteFile(o.out, table.Bytes(), 0o644))
	}
	return err
}
