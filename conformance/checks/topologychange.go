// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// TopologyChange is how one module followed a change of the topology and its revert.
type TopologyChange struct{ Change, Revert Convergence }

// Convergence is how a module followed one change.
type Convergence struct {
	Seconds float64
	// Failure is empty if all static checks of the module passed in the end.
	Failure string
	// Restarted is set if a restart of the operator was needed.
	Restarted bool
}

// ChangeTopology changes a single-replica topology to a highly available one and back.
func (d *Disruptor) ChangeTopology(ctx context.Context) (map[string]*TopologyChange, error) {
	if d.Results.TopologyChanges == nil && d.changeErr == nil {
		d.Results.TopologyChanges, d.changeErr = d.changeAndRevert(ctx)
	}
	return d.Results.TopologyChanges, d.changeErr
}

// changeAndRevert reverts the topology also after a failure.
func (d *Disruptor) changeAndRevert(ctx context.Context) (map[string]*TopologyChange, error) {
	c := d.cluster
	from := c.before.Infrastructure.Status
	changes := map[string]*TopologyChange{}
	for _, module := range changeableModules() {
		changes[module] = &TopologyChange{}
	}
	before, err := c.failuresBefore(ctx)
	if err != nil {
		return nil, err
	}
	c.progressf("Changing the topology to %s", configv1.HighlyAvailableTopologyMode)
	err = c.setTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode, nil, func(module string) *Convergence { return &changes[module].Change })
	c.progressf("Changing the topology back to %s", from.ControlPlaneTopology)
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.target.Times.Converge+c.target.Times.Settle)
	defer cancel()
	revertErr := c.setTopology(undo, from.ControlPlaneTopology, from.InfrastructureTopology, before, func(module string) *Convergence { return &changes[module].Revert })
	if err := errors.Join(err, revertErr); err != nil {
		return nil, err
	}
	return changes, nil
}

// setTopology changes the topology and measures the time until the static checks of every module pass. If they do not,
// the operator is restarted once, to report whether that helps. It does not wait for modules that failed before.
func (c *targetCluster) setTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode, failedBefore map[string]string, of func(string) *Convergence) error {
	if err := c.target.SetTopology(ctx, controlPlane, infrastructure); err != nil {
		return fmt.Errorf("change the topology: %w", err)
	}
	began := time.Now()
	for _, module := range changeableModules() {
		if failedBefore[module] != "" {
			of(module).Failure = failedBefore[module]
		}
	}
	waiting := slices.DeleteFunc(changeableModules(), func(module string) bool { return failedBefore[module] != "" })
	left, err := c.waitForModules(ctx, waiting, func(module string) { of(module).Seconds = time.Since(began).Seconds() })
	if err != nil || len(left) == 0 {
		return err
	}
	for module, wrong := range left {
		of(module).Failure = wrong
		if c.target.RestartOperator != nil {
			c.progressf("Restarting the operator of %s, which has not followed", module)
			if err := c.target.RestartOperator(ctx, module); err != nil {
				return fmt.Errorf("restart the operator of %s: %w", module, err)
			}
		}
	}
	if c.target.RestartOperator == nil {
		return nil
	}
	still, err := c.waitForModules(ctx, slices.Sorted(maps.Keys(left)), func(module string) {
		of(module).Seconds, of(module).Restarted, of(module).Failure = time.Since(began).Seconds(), true, ""
	})
	for module, wrong := range still {
		of(module).Failure = wrong
	}
	return err
}

// waitForModules calls passed for each module whose static checks pass, and returns the failures of the others.
func (c *targetCluster) waitForModules(ctx context.Context, modules []string, passed func(string)) (map[string]string, error) {
	left := map[string]string{}
	for _, module := range modules {
		left[module] = "not checked"
	}
	_, err := within(ctx, c.target.Times.Poll, c.target.Times.Converge, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		if err != nil {
			return false, err
		}
		for _, module := range slices.Sorted(maps.Keys(left)) {
			wrong, err := c.failureOf(ctx, module, state)
			if err != nil {
				return false, err
			}
			if left[module] = wrong; wrong == "" {
				delete(left, module)
				passed(module)
			}
		}
		return len(left) == 0, nil
	})
	return left, err
}

func (c *targetCluster) failuresBefore(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, module := range append(changeableModules(), moduleTopology) {
		wrong, err := c.failureOf(ctx, module, c.before)
		if err != nil {
			return nil, err
		}
		if wrong != "" {
			all[module] = wrong
		}
	}
	return all, nil
}

// failureOf runs the static checks of a module; of module topology, which covers all operators, only the core ones.
func (c *targetCluster) failureOf(ctx context.Context, module string, state *State) (string, error) {
	in := &Input{State: state, Times: c.target.Times}
	for _, check := range c.checks {
		if check.Module != module || check.Tier != Static || module == moduleTopology && check.Level != Core || check.NotApplicable != nil && check.NotApplicable(state) != "" {
			continue
		}
		evidence, err := check.Run(ctx, in)
		if err != nil {
			return "", err
		}
		if failure := failureMessage(evidence); failure != "" {
			return check.ID + ": " + failure, nil
		}
	}
	return "", nil
}

// changeableModules are those whose static checks run after a change of the topology.
func changeableModules() []string {
	return []string{moduleIngress, moduleEtcdGuard, moduleConsole, moduleAuth, moduleApprover}
}
