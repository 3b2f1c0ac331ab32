// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"

	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework"
)

// placement is a value of a person, which --force-conflicts replaces on a single node.
var placement = Value{ingressObject.Object, field("spec", "nodePlacement"), map[string]any{
	"nodeSelector": map[string]any{"matchLabels": map[string]any{"example.com/router": ""}},
}}

func (e *environment) place(ctx context.Context, placement any) {
	e.merge(ctx, ingressObject, map[string]any{"spec": map[string]any{"nodePlacement": placement}})
}

// alone kills the controller of one module, which has its own process and its own rights. That of ingress takes values
// of a person, and restores them.
func (e *environment) alone(ctx context.Context, module framework.Module, kills int) {
	Expect(e.InstallRBAC(ctx, module)).To(Succeed())
	var args []string
	switch module {
	case framework.Ingress:
		args = []string{"--force-conflicts"}
	case framework.EtcdGuard:
		args = []string{e.etcd}
	case framework.MachineConfig:
		args = []string{drainTimeout}
	}
	e.modules = []framework.Module{module}
	p := e.run(ctx, module.Controller(), module.Account(), module.Controller().Name+".sno.solonode.github.io", args...)
	if e.single {
		e.undisturbed(ctx, p, e.flip())
	}
	if e.forced = module == framework.Ingress; e.forced {
		e.undisturbed(ctx, p, change{name: "a person's placement", make: func(ctx context.Context) { e.place(ctx, placement.Value) }})
	}
	for until := e.tally.kills() + kills; e.tally.kills() < until; {
		switch {
		case module == framework.MachineConfig:
			e.drained(ctx, p)
		case e.single && e.random.IntN(2) == 0:
			e.round(ctx, p, e.optOut(module))
		default:
			e.round(ctx, p, e.flip())
		}
	}
	e.clear(ctx, p)
	if e.forced {
		if e.single {
			e.undisturbed(ctx, p, e.flip())
		}
		e.forced = false
		e.place(ctx, nil)
	}
	e.end(ctx, p)
	Expect(e.InstallAllControllers(ctx)).To(Succeed())
}
