// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/agnhost"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/kind"
)

// Scenario is a single node that runs all workloads.
const Scenario = "none-sno"

// Options configure a run.
type Options struct {
	// Name is the name of the cluster.
	Name  string
	Tests []Test
	// Off means that the controllers are left out.
	Off bool
	// Procs is the number of tests in parallel.
	Procs int
	// Out is the folder of the reports.
	Out string
	// Keep keeps the cluster.
	Keep bool
	// Once means that failed tests are not repeated alone. With the modules off, those that need them never are.
	Once     bool
	Skips    []Skip
	Progress io.Writer
}

// Run creates a cluster, runs the tests that are not skipped with a reason (R-SUITE-1), and removes the cluster. Failed
// tests run a second time, alone.
func Run(ctx context.Context, o Options) (results Results, err error) {
	suite, err := assets.EnsureSuite(ctx, o.Progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	node, err := assets.EnsureNode(ctx, o.Progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	all, err := listImages(ctx, suite)
	if err != nil {
		return nil, err
	}
	archive, err := agnhost.Ensure(ctx, suite, all.agnhost, o.Progress)
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	e, err := kindtarget.Start(ctx, kindtarget.Options{
		Scenario: Scenario, Kind: kind.Config{Name: o.Name}, NoControllers: o.Off, Figures: filepath.Join(o.Out, "figures"), Progress: o.Progress,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	defer func() {
		if o.Keep {
			e.Detach()
			fmt.Fprintf(o.Progress, "The cluster is kept: export KUBECONFIG=%s; remove it with -name %s -delete\n", e.Kind.Kubeconfig(), o.Name)
			return
		}
		e.Stop()
	}()
	if err := o.prepare(ctx, e, archive, all); err != nil {
		return nil, err
	}
	g := ginkgo{suite: suite, kubectl: node.Program("kubectl"), kubeconfig: e.Kind.Kubeconfig(), procs: o.Procs, progress: o.Progress}
	started := time.Now()
	fmt.Fprintf(o.Progress, "%d tests, %d in parallel\n", len(o.Tests), o.Procs)
	if results, err = g.run(ctx, o.Out, o.Tests); err != nil {
		return results, errors.Join(err, e.Logs(filepath.Join(o.Out, "logs")))
	}
	if err := o.repeat(ctx, g, results); err != nil {
		return results, err
	}
	fmt.Fprintf(o.Progress, "%d tests took %s\n", len(o.Tests), time.Since(started).Round(time.Second))
	if len(results.Names(Failed)) > 0 {
		if err := e.Logs(filepath.Join(o.Out, "logs")); err != nil {
			fmt.Fprintln(o.Progress, err)
		}
	}
	return results, o.settle(ctx, e)
}

// prepare loads what the tests need when the controllers have settled.
func (o Options) prepare(ctx context.Context, e *kindtarget.Env, archive string, all imagesOf) error {
	if err := o.settle(ctx, e); err != nil {
		return err
	}
	if err := e.Kind.Load(ctx, archive); err != nil {
		return err //nolint:wrapcheck // complete
	}
	if err := e.Kind.Tag(ctx, e.Target().Image, all.pause...); err != nil {
		return fmt.Errorf("name the image pause: %w", err)
	}
	return nil
}

func (o Options) settle(ctx context.Context, e *kindtarget.Env) error {
	if o.Off {
		return nil
	}
	return e.WaitSettled(ctx) //nolint:wrapcheck // complete
}

// repeat runs failed tests a second time, one after the other, unless the reason of the failure is a missing image.
func (o Options) repeat(ctx context.Context, g ginkgo, results Results) error {
	var failed []Test
	for _, test := range o.Tests {
		r, mustFail := results[test.Codename], o.Off && needsModules(o.Skips, test.Codename)
		if r.Outcome == Failed && r.Image == "" && !mustFail {
			failed = append(failed, test)
		}
	}
	if len(failed) == 0 || o.Once {
		return nil
	}
	fmt.Fprintf(o.Progress, "%d failed tests again, one at a time\n", len(failed))
	g.procs = 1
	second, err := g.run(ctx, filepath.Join(o.Out, "again"), failed)
	if err != nil {
		return err
	}
	results.merge(second)
	return nil
}

// Clear removes the reports of an earlier run.
func Clear(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("clear the folder of the reports: %w", err)
	}
	return nil
}
