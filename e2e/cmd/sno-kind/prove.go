// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/solonode/sno/e2e/experiments"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/kind"
)

// errFailed means that a check or an experiment failed.
var errFailed = errors.New("failed")

// prove runs everything, and removes the clusters in any case.
func prove(ctx context.Context, o options) error {
	chosen, err := kindtarget.Select(experiments.All(), o.names())
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.figures()); err != nil {
		return fmt.Errorf("clear the figures: %w", err)
	}
	lanes, err := o.fitting(ctx, chosen)
	if err != nil {
		return err
	}
	errs := make([]error, len(lanes)+1)
	var running sync.WaitGroup
	// The last lane has the turn at first: the second cluster waits longest, so it begins first.
	o.turn <- struct{}{}
	for i, l := range lanes {
		if len(lanes) > 1 {
			l.config.Progress = o.progress.by(l.config.Name)
		}
		running.Go(func() { errs[i] = o.do(ctx, l, i == len(lanes)-1) })
	}
	running.Wait()
	errs[len(lanes)] = o.figure(chosen)
	o.progress.logf("Done")
	return errors.Join(errs...)
}

// do makes a cluster, runs the lane's work, and removes it. It keeps the turn until the end of the suite, which has
// many pods.
func (o options) do(ctx context.Context, l lane, turn bool) error {
	name := l.config.Name
	if !turn {
		if err := o.take(ctx); err != nil {
			return err
		}
	}
	e, err := o.bringUp(ctx, l.config)
	var failed error
	if l.suite && err == nil {
		o.progress.logf("%s: the conformance suite", name)
		if code := suite(ctx, e, o); code != 0 {
			failed = fmt.Errorf("%w: the conformance suite exit code %d", errFailed, code)
		}
	}
	o.release()
	if e != nil {
		defer o.finish(e)
	}
	if err != nil {
		return err
	}
	err = errors.Join(failed, o.try(ctx, e, l.chosen))
	o.progress.logf("%s: done", name)
	return err
}

// bringUp creates a cluster and installs the scenario. A cluster may exist even if it returns an error.
func (o options) bringUp(ctx context.Context, config kind.Config) (*kindtarget.Env, error) {
	o.progress.logf("%s: a cluster of real kubelets for %s", config.Name, o.scenario)
	e, err := kindtarget.Start(ctx, kindtarget.Options{Scenario: o.scenario, Kind: config, Figures: o.figures(), Progress: config.Progress})
	if err != nil {
		return nil, err
	}
	o.progress.logf("%s: waiting for the controllers to settle", config.Name)
	if err := e.WaitSettled(ctx); err != nil {
		return e, err
	}
	o.progress.logf("%s: the later workers join", config.Name)
	if err := e.AddDay2Workers(ctx); err != nil {
		return e, err
	}
	return e, e.WaitSettled(ctx)
}

// finish removes a cluster, or only the processes outside of it.
func (o options) finish(e *kindtarget.Env) {
	if !o.keep {
		e.Stop()
		return
	}
	e.Detach()
	o.progress.logf("The cluster is kept: export KUBECONFIG=%s; remove it with -name %s -delete", e.Kind.Kubeconfig(), e.Kind.Name())
}

// take waits for the turn.
func (o options) take(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // complete
	}
}

// release releases the turn.
func (o options) release() { <-o.turn }

// inTurn calls a function, and waits for the turn if it is exclusive.
func (o options) inTurn(ctx context.Context, exclusive bool, do func() error) error {
	if !exclusive {
		return do()
	}
	if err := o.take(ctx); err != nil {
		return err
	}
	defer o.release()
	return do()
}

// figures returns the folder for measurements.
func (o options) figures() string {
	if o.out == "" {
		return ""
	}
	return filepath.Join(o.out, "figures")
}

// suite runs the conformance suite.
func suite(ctx context.Context, e *kindtarget.Env, o options) int {
	flags := []string{"--tiers", o.tiers}
	if o.out != "" {
		flags = append(flags, "-o", o.out, "--artifacts", filepath.Join(o.out, "artifacts"))
	}
	return e.RunSuite(ctx, flags...)
}
