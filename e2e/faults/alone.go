// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/patch/ownership"
)

// placement is a value of a person, which --force-conflicts replaces on a single node.
var placement = Value{ingressObject.Object, field("spec", "nodePlacement"), map[string]any{
	"nodeSelector": map[string]any{"matchLabels": map[string]any{"example.com/router": ""}},
}}

// Restored returns values that a release did not restore, or not under the name of their owner.
func Restored(live *unstructured.Unstructured, manager string, values ...Value) []Violation {
	var found []Violation
	for _, v := range values {
		got, _ := lookup(live.Object, v.Path)
		managers, err := ownership.ManagersAt(live, v.Path)
		if err != nil || !reflect.DeepEqual(got, v.Value) || !slices.Equal(managers, []string{manager}) {
			found = append(found, Violation{InvariantRestored, fmt.Sprintf("%s of %s is %v of %v, want %v of %s (%v)",
				v.Path, v.Object, got, managers, v.Value, manager, err)})
		}
	}
	return found
}

// alone kills the controller of one module, which has its own process and its own rights. That of ingress takes values
// of a person, and restores them.
func (e *environment) alone(ctx context.Context, module framework.Module, kills int, figures *Kills) error {
	if err := e.InstallRBAC(ctx, module); err != nil {
		return err
	}
	var args []string
	switch module {
	case framework.Ingress:
		args = []string{"--force-conflicts"}
	case framework.EtcdGuard:
		args = []string{"--etcd-endpoints=" + e.etcd}
	case framework.MachineConfig:
		args = []string{drainTimeout}
	}
	e.modules = []framework.Module{module}
	e.started++
	name := module.Controller().Name
	p, err := e.run(ctx, fmt.Sprintf("%s-%d", name, e.started), module.Controller(), module.Account(), name+".sno.solonode.github.io", args...)
	if err != nil {
		return err
	}
	if e.single {
		if err := e.undisturbed(ctx, p, e.flip()); err != nil {
			return err
		}
	}
	if e.forced = module == framework.Ingress; e.forced {
		body := map[string]any{"spec": map[string]any{"nodePlacement": placement.Value}}
		take := change{name: "a person's placement", make: func(ctx context.Context) error { return e.merge(ctx, ingressObject, person, body) }}
		if err := e.undisturbed(ctx, p, take); err != nil {
			return err
		}
	}
	for until := total(figures.ByMode) + kills; total(figures.ByMode) < until; {
		if module == framework.MachineConfig {
			if err := e.drained(ctx, p, figures); err != nil {
				return err
			}
			continue
		}
		c := e.flip()
		if e.single && e.random.IntN(2) == 0 {
			c = e.optOut(module)
		}
		if err := e.round(ctx, p, c, figures); err != nil {
			return err
		}
	}
	if err := e.clear(ctx, p); err != nil {
		return err
	}
	if e.forced {
		if e.single {
			if err := e.undisturbed(ctx, p, e.flip()); err != nil {
				return err
			}
		}
		e.forced = false
		if err := e.merge(ctx, ingressObject, person, map[string]any{"spec": map[string]any{"nodePlacement": nil}}); err != nil {
			return err
		}
	}
	if err := e.end(ctx, p); err != nil {
		return err
	}
	return e.InstallAllControllers(ctx)
}

// clear removes all opt-outs.
func (e *environment) clear(ctx context.Context, p *process) error {
	for _, module := range framework.AllModules() {
		if e.optedOut[module] {
			if err := e.undisturbed(ctx, p, e.optOut(module)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest checks that a process that has settled writes nothing.
func (e *environment) rest(ctx context.Context) error {
	if err := pauseFor(ctx, restTime); err != nil {
		return err
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return err
	}
	if found := AtRest(writes, ours); len(found) > 0 {
		return fmt.Errorf("%w:\n%s", ErrInvariant, texts(found))
	}
	return nil
}
