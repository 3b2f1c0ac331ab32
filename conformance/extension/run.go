// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

type runOptions struct {
	cluster            clusterFlags
	tiers              []string
	disruptive         bool
	modules, ids       []string
	artifacts, waivers string
	outputs            []string
}

func (p Program) run() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use: "run", GroupID: groupPeople, Short: "Check a cluster and write a report", Args: cobra.NoArgs,
		Long: `Check a cluster and write a report.

Without -o only a summary is printed. The static tier reads; the scheduled tier works in its own namespaces, which it deletes;
the disruptive tier disturbs the cluster and must be selected. Its checks of a reboot, an outage of the API server and an
upgrade need a command for each. A command that ends with success and changes nothing makes a check inconclusive. What it
leaves running is killed; after an interruption it has 30 seconds to clean up.

The exit code is 0 if all checks that ran passed or are waived, 1 if not, 2 for invalid arguments or an unusable cluster.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.check(c.Context(), o) },
	}
	o.cluster.bind(c.Flags())
	o.cluster.bindHooks(c.Flags())
	o.cluster.bindOutageHook(c.Flags())
	c.Flags().StringSliceVar(&o.tiers, "tiers", []string{string(catalogue.Static), string(catalogue.Scheduled)}, "tiers to run")
	c.Flags().BoolVar(&o.disruptive, "disruptive", false, "run all tiers")
	c.Flags().StringSliceVar(&o.modules, "modules", nil, "only the checks of these modules")
	c.Flags().StringSliceVar(&o.ids, "checks", nil, "only the checks with these ids")
	c.Flags().StringVar(&o.artifacts, "artifacts", "", "folder for artifacts of failed checks, and for the output of the commands")
	c.Flags().StringVar(&o.waivers, "waivers", "", "file of waivers: known failures with an expiry date")
	c.Flags().StringSliceVarP(&o.outputs, "output", "o", nil,
		"folder for the report in all forms, or a file that ends in .yaml, .json, .xml (JUnit) or .html; may be repeated")
	c.MarkFlagsMutuallyExclusive("tiers", "disruptive")
	return c
}

func (p Program) check(ctx context.Context, o runOptions) error {
	checks, err := runner.Select(p.Catalogue, o.selection())
	if err != nil {
		return err
	}
	waivers, err := p.readWaivers(o.waivers)
	if err != nil {
		return err
	}
	files, err := outputFiles(o.outputs)
	if err != nil {
		return err
	}
	target, stop, err := o.cluster.connect(ctx, p, checks, o.artifacts)
	defer stop()
	if err != nil {
		return err
	}
	done, err := assessment{execution: execution{Program: p, target: target, checks: checks, artifacts: o.artifacts}, waivers: waivers, files: files}.run(ctx)
	if len(done.Results) == 0 {
		return err
	}
	if failure := report.Verdict([]report.Report{done}); failure != nil {
		err = errors.Join(fmt.Errorf("%w: %w", errFailed, failure), err)
	}
	return err
}

// assessment is a run of checks with its report.
type assessment struct {
	execution
	waivers  []report.Waiver
	files    []string
	measured []report.Measurement
}

// run writes the report into the files and prints a summary. A run that has not ended has no results.
func (a assessment) run(ctx context.Context) (report.Report, error) {
	show := newScreen(a.Err, a.Colour, a.checks)
	a.each = show.finished
	done, err := a.execution.run(ctx)
	if len(done.Results) == 0 {
		return done, err
	}
	unused := report.Apply([]report.Report{done}, a.waivers, a.Now())
	done.Measurements = a.measured
	for _, file := range a.files {
		err = errors.Join(err, writeFile(file, done, encoders[filepath.Ext(file)]))
	}
	show.summary(done, unused, a.files)
	return done, err
}

func (o runOptions) selection() runner.Selection {
	chosen := runner.Selection{IDs: o.ids, Modules: o.modules}
	for _, tier := range o.tiers {
		chosen.Tiers = append(chosen.Tiers, catalogue.Tier(tier))
	}
	if o.disruptive {
		chosen.Tiers = catalogue.Tiers()
	}
	return chosen
}

func (p Program) readWaivers(file string) ([]report.Waiver, error) {
	if file == "" {
		return nil, nil
	}
	known := make([]string, len(p.Catalogue))
	for i, check := range p.Catalogue {
		known[i] = check.ID
	}
	return report.ReadWaivers(file, known)
}
