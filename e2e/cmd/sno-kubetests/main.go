// SPDX-License-Identifier: Apache-2.0

// Command sno-kubetests runs Kubernetes' conformance tests on a single node of a kind cluster, with all controllers and
// without them, and compares. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/kubetests"
	"github.com/solonode/sno/testcluster/kind"
)

func main() { os.Exit(commandline.Main("sno-kubetests", run)) }

// options are the flags.
type options struct {
	name, modules, focus, out string
	procs                     int
	images, list, once        bool
	keep, remove              bool
}

var errFlag = errors.New("wrong flag")

func run(ctx context.Context, arguments []string, errs io.Writer) error {
	o, err := parse(arguments, errs)
	if err != nil {
		return err
	}
	if o.remove {
		return kind.Delete(ctx, o.name, errs)
	}
	skips, err := kubetests.Skips()
	if err != nil {
		return err
	}
	all, err := kubetests.All(ctx)
	if err != nil {
		return err
	}
	if err := kubetests.CheckSkips(all, skips); err != nil {
		return err
	}
	tests, err := o.chosen(all, skips)
	if err != nil {
		return err
	}
	if o.list {
		for _, test := range tests {
			fmt.Println(test.Codename)
		}
		return nil
	}
	fmt.Fprintf(errs, "Tests: %d of %d\n", len(tests), len(all))
	on, off, err := o.both(ctx, tests, skips, errs)
	if on == nil && off == nil {
		return err
	}
	if o.images {
		return errors.Join(err, kubetests.VerifyImages(skips, on))
	}
	kubetests.Print(os.Stdout, skips, on, off)
	return errors.Join(err, kubetests.Verdict(skips, on, off))
}

func parse(arguments []string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("sno-kubetests", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.name, "name", "sno-kubetests", "name of the cluster and prefix of its containers")
	flags.StringVar(&o.modules, "modules", "both", "run with the modules on, off, or both, one after the other")
	flags.StringVar(&o.focus, "focus", "", "only the tests whose names match this regular expression")
	flags.IntVar(&o.procs, "procs", 4, "tests in parallel, except those that are Serial") //nolint:mnd // a default
	flags.BoolVar(&o.once, "once", false, "do not repeat failed tests")
	flags.BoolVar(&o.images, "images", false, "run the tests that are skipped because of an image, and verify that each needs it")
	flags.BoolVar(&o.list, "list", false, "list the tests")
	flags.StringVar(&o.out, "out", "", "folder for the reports; empty for a temporary one")
	flags.BoolVar(&o.keep, "keep", false, "keep the last cluster")
	flags.BoolVar(&o.remove, "delete", false, "only remove the cluster of that name")
	if err := flags.Parse(arguments); err != nil {
		return o, err //nolint:wrapcheck // reported already
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: sno-kubetests takes flags only, not %q", errFlag, flags.Args())
	}
	if !slices.Contains([]string{"on", "off", "both"}, o.modules) {
		return o, fmt.Errorf("%w: -modules is %q, want on, off or both", errFlag, o.modules)
	}
	if o.images {
		o.modules, o.once = "on", true
	}
	return o, nil
}

// chosen returns the tests that the flags select.
func (o options) chosen(all []kubetests.Test, skips []kubetests.Skip) ([]kubetests.Test, error) {
	tests, _ := kubetests.Split(all, skips, kubetests.Kinds()...)
	if o.images {
		_, tests = kubetests.Split(all, skips, kubetests.Image)
	}
	pattern, err := regexp.Compile(o.focus)
	if err != nil {
		return nil, fmt.Errorf("%w: -focus: %w", errFlag, err)
	}
	tests = slices.DeleteFunc(tests, func(t kubetests.Test) bool { return !pattern.MatchString(t.Codename) })
	if len(tests) == 0 {
		return nil, fmt.Errorf("%w: the flags select no test", errFlag)
	}
	return tests, nil
}

// both runs the tests in the modes. Each mode has a new cluster.
func (o options) both(ctx context.Context, tests []kubetests.Test, skips []kubetests.Skip, errs io.Writer) (on, off kubetests.Results, err error) {
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "sno-kubetests-"); err != nil {
			return nil, nil, fmt.Errorf("make a folder for the reports: %w", err)
		}
		fmt.Fprintf(errs, "Reports: %s\n", o.out)
	}
	for _, mode := range []string{"on", "off"} {
		if o.modules != "both" && o.modules != mode {
			continue
		}
		folder := filepath.Join(o.out, "modules-"+mode)
		if err := kubetests.Clear(folder); err != nil {
			return on, off, err
		}
		fmt.Fprintf(errs, "Modules %s\n", mode)
		results, failed := kubetests.Run(ctx, kubetests.Options{
			Name: o.name, Tests: tests, Off: mode == "off", Procs: o.procs, Out: folder, Once: o.once, Skips: skips, Progress: errs,
			Keep: o.keep && (mode == "off" || o.modules == "on"),
		})
		if mode == "on" {
			on = results
		} else {
			off = results
		}
		if failed != nil {
			return on, off, fmt.Errorf("modules %s: %w", mode, failed)
		}
	}
	return on, off, nil
}
