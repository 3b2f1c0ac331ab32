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

// TopologyChange is how one module followed a change of the topology, and the change back.
type TopologyChange struct{ Change, Revert Convergence }

// Convergence is how operators followed one change.
type Convergence struct {
	// Seconds until everything was as wanted.
	Seconds float64
	// Failure says what was not as wanted in the end; empty when all was.
	Failure string
	// Restarted says that it took a restart of the operator.
	Restarted bool
}

// ChangeTopology changes a single-replica topology to a highly available one and back.
func (s *Disruptor) ChangeTopology(ctx context.Context) (map[string]*TopologyChange, error) {
	if s.Results.TopologyChanges == nil && s.changeErr == nil {
		s.Results.TopologyChanges, s.changeErr = s.changeAndRevert(ctx)
	}
	return s.Results.TopologyChanges, s.changeErr
}

// flip changes the topology back, whatever comes of the change.
func (s *Disruptor) changeAndRevert(ctx context.Context) (map[string]*TopologyChange, error) {
	c := s.cluster
	from := c.before.Infrastructure.Status
	flips := map[string]*TopologyChange{}
	for _, module := range changeableModules() {
		flips[module] = &TopologyChange{}
	}
	before, err := c.failuresBefore(ctx)
	if err != nil {
		return nil, err
	}
	c.progressf("Changing the topology to %s", configv1.HighlyAvailableTopologyMode)
	err = c.setTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode, nil, func(module string) *Convergence { return &flips[module].Change })
	c.progressf("Changing the topology back to %s", from.ControlPlaneTopology)
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.target.Times.Converge+c.target.Times.Settle)
	defer cancel()
	back := c.setTopology(undo, from.ControlPlaneTopology, from.InfrastructureTopology, before, func(module string) *Convergence { return &flips[module].Revert })
	if err := errors.Join(err, back); err != nil {
		return nil, err
	}
	return flips, nil
}

// follow changes the topology and times until every module's static checks hold. Where they do not come to, the operator is restarted
// once: whether that helps is worth knowing. Nobody waits for what is hopeless because it was wrong before.
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
	hoped := slices.DeleteFunc(changeableModules(), func(module string) bool { return failedBefore[module] != "" })
	left, err := c.waitForModules(ctx, hoped, func(module string) { of(module).Seconds = time.Since(began).Seconds() })
	if err != nil || len(left) == 0 {
		return err
	}
	for module, wrong := range left {
		of(module).Failure = wrong
		if c.target.RestartOperator != nil {
			c.progressf("Restarting what shapes %s, which has not followed", module)
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

// waitFor waits until the static checks of modules hold, tells of each that does, and returns what is wrong with the others.
func (c *targetCluster) waitForModules(ctx context.Context, modules []string, tell func(string)) (map[string]string, error) {
	left := map[string]string{}
	for _, module := range modules {
		left[module] = "not looked at"
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
				tell(module)
			}
		}
		return len(left) == 0, nil
	})
	return left, err
}

// failuresBefore is what was wrong with modules before anything was done.
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

// failureOf does the static checks of a module. Of those about the topology, which are about every operator, it does the core ones.
func (c *targetCluster) failureOf(ctx context.Context, module string, state *State) (string, error) {
	bench := &Environment{State: state, Times: c.target.Times}
	for _, check := range c.checks {
		if check.Module != module || check.Tier != Static || module == moduleTopology && check.Level != Core || check.NotApplicable != nil && check.NotApplicable(state) != "" {
			continue
		}
		evidence, err := check.Run(ctx, bench)
		if err != nil {
			return "", err
		}
		if said := failureMessage(evidence); said != "" {
			return check.ID + ": " + said, nil
		}
	}
	return "", nil
}

// flipped are the modules whose static checks are done after a change of the topology.
func changeableModules() []string {
	return []string{moduleIngress, moduleEtcdGuard, moduleConsole, moduleAuth, moduleApprover}
}
