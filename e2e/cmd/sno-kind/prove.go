package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/solonode/sno/e2e/experiments"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/e2e/sample"
	"github.com/solonode/sno/testcluster/kind"
)

// errRed says that something was not as it must be.
var errRed = errors.New("not everything is as it must be")

// sampled is the sample of the experiments, in their order.
func (o options) sampled(chosen []kindtarget.Experiment) []kindtarget.Experiment {
	var names []string
	for _, experiment := range sample.SelectFrom(chosen, o.some, o.start) {
		names = append(names, experiment.Name)
	}
	return slices.DeleteFunc(slices.Clone(chosen), func(e kindtarget.Experiment) bool { return !slices.Contains(names, e.Name) })
}

// prove does it all, and removes the clusters whatever comes.
func prove(ctx context.Context, o options) error {
	chosen, err := kindtarget.Select(experiments.All(), o.names())
	if err != nil {
		return err
	}
	if part := o.sampled(chosen); len(part) < len(chosen) {
		o.told.say("Experiments: %s", sample.Describe(len(part), len(chosen), o.start))
		chosen = part
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
	// The turn is the last one's from the beginning: what is on the second cluster waits longest, and so begins first.
	o.turn <- struct{}{}
	for i, l := range lanes {
		if len(lanes) > 1 {
			l.config.Progress = o.told.by(l.config.Name)
		}
		running.Go(func() { errs[i] = o.do(ctx, l, i == len(lanes)-1) })
	}
	running.Wait()
	errs[len(lanes)] = o.figure(chosen)
	o.told.say("Done")
	return errors.Join(errs...)
}

// do makes a cluster, does what is to be done on it, and removes it. The turn is kept until the suite is through: it has many pods.
func (o options) do(ctx context.Context, l lane, turn bool) error {
	name := l.config.Name
	if !turn {
		if err := o.take(ctx); err != nil {
			return err
		}
	}
	e, err := o.bringUp(ctx, l.config)
	var red error
	if l.suite && err == nil {
		o.told.say("%s: the conformance suite", name)
		if code := suite(ctx, e, o); code != 0 {
			red = fmt.Errorf("%w: the conformance suite ended with %d", errRed, code)
		}
	}
	o.give()
	if e != nil {
		defer o.leave(e)
	}
	if err != nil {
		return err
	}
	err = errors.Join(red, o.try(ctx, e, l.chosen))
	o.told.say("%s: done", name)
	return err
}

// bringUp makes a cluster. If that goes wrong half-way, there may be one all the same.
func (o options) bringUp(ctx context.Context, config kind.Config) (*kindtarget.Env, error) {
	o.told.say("%s: a cluster of real kubelets for %s", config.Name, o.scenario)
	e, err := kindtarget.Start(ctx, kindtarget.Options{Scenario: o.scenario, Kind: config, Figures: o.figures(), Progress: config.Progress})
	if err != nil {
		return nil, err
	}
	o.told.say("%s: the controllers come to rest", config.Name)
	if err := e.WaitSettled(ctx); err != nil {
		return e, err
	}
	o.told.say("%s: the later workers join", config.Name)
	if err := e.AddDay2Workers(ctx); err != nil {
		return e, err
	}
	return e, e.WaitSettled(ctx)
}

// leave removes a cluster, or only what runs beside it.
func (o options) leave(e *kindtarget.Env) {
	if !o.keep {
		e.Stop()
		return
	}
	e.Detach()
	o.told.say("The cluster stays: export KUBECONFIG=%s; remove it with -name %s -delete", e.Kind.Kubeconfig(), e.Kind.Name())
}

// take waits for the turn of whoever loads the machine, in the order of asking.
func (o options) take(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // says it all
	}
}

// give gives the turn to the next.
func (o options) give() { <-o.turn }

// inTurn does something, and if it has to be alone, in its turn.
func (o options) inTurn(ctx context.Context, alone bool, do func() error) error {
	if !alone {
		return do()
	}
	if err := o.take(ctx); err != nil {
		return err
	}
	defer o.give()
	return do()
}

// figures is where what is measured goes.
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
