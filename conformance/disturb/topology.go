// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
)

// changeAndRevert changes a single-replica topology to a highly available one and back, also after a failure.
func (d *Disturber) changeAndRevert(ctx context.Context) (map[string]*catalogue.TopologyChange, error) {
	from := d.Before.Infrastructure.Status
	before, err := d.failuresBefore()
	if err != nil {
		return nil, err
	}
	d.Target.Progressf("Changing the topology to %s", configv1.HighlyAvailableTopologyMode)
	change, err := d.setTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode, nil)
	d.Target.Progressf("Changing the topology back to %s", from.ControlPlaneTopology)
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Target.Times.Converge+d.Target.Times.Settle)
	defer cancel()
	revert, revertErr := d.setTopology(undo, from.ControlPlaneTopology, from.InfrastructureTopology, before)
	if err := errors.Join(err, revertErr); err != nil {
		return nil, err
	}
	changes := map[string]*catalogue.TopologyChange{}
	for _, module := range changeableModules() {
		changes[module] = &catalogue.TopologyChange{Change: change[module], Revert: revert[module]}
	}
	return changes, nil
}

// setTopology changes the topology and measures the time until the static checks of every module pass. If they do not,
// the operator is restarted once, to report whether that helps. It does not wait for modules that failed before.
func (d *Disturber) setTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode, failedBefore map[string]string) (map[string]catalogue.Convergence, error) {
	if err := d.Target.SetTopology(ctx, controlPlane, infrastructure); err != nil {
		return nil, fmt.Errorf("change the topology: %w", err)
	}
	began := time.Now()
	all := map[string]catalogue.Convergence{}
	var waiting []string
	for _, module := range changeableModules() {
		if all[module] = (catalogue.Convergence{Failure: failedBefore[module]}); failedBefore[module] == "" {
			waiting = append(waiting, module)
		}
	}
	left, err := d.waitForModules(ctx, waiting, func(module string) { all[module] = catalogue.Convergence{Seconds: time.Since(began).Seconds()} })
	for module, wrong := range left {
		all[module] = catalogue.Convergence{Failure: wrong}
	}
	if err != nil || len(left) == 0 || d.Target.RestartOperator == nil {
		return all, err
	}
	for module := range left {
		d.Target.Progressf("Restarting the operator of %s, which has not followed", module)
		if err := d.Target.RestartOperator(ctx, module); err != nil {
			return nil, fmt.Errorf("restart the operator of %s: %w", module, err)
		}
	}
	left, err = d.waitForModules(ctx, slices.Sorted(maps.Keys(left)), func(module string) {
		all[module] = catalogue.Convergence{Seconds: time.Since(began).Seconds(), Restarted: true}
	})
	for module, wrong := range left {
		all[module] = catalogue.Convergence{Failure: wrong, Restarted: true}
	}
	return all, err
}

// waitForModules calls passed for each module whose static checks pass, and returns the failures of the others.
func (d *Disturber) waitForModules(ctx context.Context, modules []string, passed func(string)) (map[string]string, error) {
	left := map[string]string{}
	for _, module := range modules {
		left[module] = "not checked"
	}
	_, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Converge, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if err != nil {
			return false, err
		}
		for _, module := range slices.Sorted(maps.Keys(left)) {
			wrong, err := failureOf(module, state)
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

// failuresBefore returns the failures of modules before all acts.
func (d *Disturber) failuresBefore() (map[string]string, error) {
	all := map[string]string{}
	for _, module := range append(changeableModules(), catalogue.Topology) {
		wrong, err := failureOf(module, d.Before)
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
func failureOf(module string, state *catalogue.State) (string, error) {
	for _, check := range catalogue.All() {
		if check.Module != module || check.Tier != catalogue.Static || module == catalogue.Topology && check.Level != catalogue.Core || check.Excluded(state) != "" {
			continue
		}
		evidence, err := check.Run(&catalogue.Input{State: state})
		if err != nil {
			return "", err
		}
		if failure := report.FirstFailure(evidence); failure != "" {
			return check.ID + ": " + failure, nil
		}
	}
	return "", nil
}

// changeableModules are those whose static checks run after a change of the topology.
func changeableModules() []string {
	return catalogue.Modules(slices.DeleteFunc(catalogue.All(), func(check catalogue.Check) bool { return check.Act != catalogue.ChangeTopology }))
}
