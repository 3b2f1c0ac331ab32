// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
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
	target, err := o.cluster.connect(ctx, p, checks, o.artifacts)
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

type clusterFlags struct{ options ClusterOptions }

func (c *clusterFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.Kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, the pod's service account")
	flags.StringVar(&c.options.Scenario, "scenario", "", "name of the cluster in the report; default: its infrastructure name")
	flags.StringVar(&c.options.Image, "image", "",
		"image of copies of Deployments, which must keep running; default: one with a shell that OpenShift runs on the nodes, or "+runner.CopyImage)
	flags.StringSliceVar(&c.options.PayloadNamespaces, "payload-namespaces", nil,
		"namespaces whose objects count as OpenShift's own; default: those of the release payload, without add-ons. The run prints those that exist")
}

// bindHooks adds the commands that act on the cluster. OpenShift's test runner does not know them.
func (c *clusterFlags) bindHooks(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.RebootCommand, "reboot-command", "", "shell command that reboots the node of its last argument; proved by the node's boot ID")
	flags.StringVar(&c.options.UpgradeCommand, "upgrade-command", "", "shell command that upgrades the cluster; proved by the history of the ClusterVersion")
}

func (c *clusterFlags) bindOutageHook(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.OutageCommand, "outage-command", "",
		"shell command that stops the API server for $SNO_OUTAGE_SECONDS seconds and starts it; proved by requests without an answer")
}

// connect returns the configured cluster for checks.
func (c *clusterFlags) connect(ctx context.Context, p Program, chosen []catalogue.Check, artifacts string) (cluster.Target, error) {
	options := c.options
	options.Tiers, options.Artifacts, options.Progress = runner.TiersOf(chosen), artifacts, p.Err
	return p.Provider(ctx, options)
}

// errNotCleanedUp is returned if the deletion of the run's objects failed.
var errNotCleanedUp = errors.New("objects of the run may remain on the cluster")

type finished struct {
	check  catalogue.Check
	result report.Result
	ended  time.Time
}

type execution struct {
	Program
	target    cluster.Target
	checks    []catalogue.Check
	artifacts string
	// each is called for every finished check, never concurrently.
	each func(finished)

	runner runner.Running
}

func (e execution) run(ctx context.Context) (done report.Report, err error) {
	if e.runner, err = e.Connect(ctx, e.target, runner.Only(e.checks)); err != nil {
		return report.Report{}, err
	}
	defer func() { // after an interruption too
		if closing := e.runner.Close(context.WithoutCancel(ctx)); closing != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errNotCleanedUp, closing))
		}
	}()
	if err := e.runner.Start(ctx); err != nil {
		return report.Report{}, err
	}
	nonDisruptive, disruptive := runner.Split(e.checks)
	e.collectResults(ctx, nonDisruptive)
	for _, check := range disruptive {
		e.collectResults(ctx, []catalogue.Check{check})
	}
	if ctx.Err() != nil {
		return report.Report{}, fmt.Errorf("the run was interrupted: %w", context.Cause(ctx))
	}
	done = e.runner.Report()
	done.Tool = e.Build.String()
	return done, nil
}

// collectResults waits for checks that run in parallel. After the last one it collects artifacts once, if a check
// failed.
func (e execution) collectResults(ctx context.Context, checks []catalogue.Check) {
	ended := make(chan finished)
	for _, check := range checks {
		go func() { ended <- e.result(ctx, check) }()
	}
	failedID := ""
	for range checks {
		f := <-ended
		e.each(f)
		if f.result.FailureMessage() != "" && (failedID == "" || f.check.ID < failedID) {
			failedID = f.check.ID
		}
	}
	if failedID == "" || e.artifacts == "" || ctx.Err() != nil {
		return
	}
	folder := filepath.Join(e.artifacts, failedID)
	if err := e.runner.Collect(ctx, folder); err != nil {
		fmt.Fprintf(e.Err, "collect artifacts into %s: %v\n", folder, err)
	}
}

func (e execution) result(ctx context.Context, check catalogue.Check) finished {
	result, err := e.runner.Result(ctx, check.ID)
	if err != nil {
		result = check.Result()
		result.Status, result.Reason = report.Failed, err.Error()
	}
	return finished{check: check, result: result, ended: e.Now()}
}
