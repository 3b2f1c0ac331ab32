// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"

	"github.com/solonode/sno/testcluster/embedded"
)

// RestartOperator restarts a module's host operator and controller, if they run, with the same arguments.
func (r *Environment) RestartOperator(ctx context.Context, module Module) error {
	for _, name := range []string{module.Host().Name, module.Controller().Name} {
		running := r.Cluster.Program(name)
		if running == nil {
			continue
		}
		if err := r.end(ctx, module, name, running); err != nil {
			return err
		}
		if err := running.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end ends a module's host or controller.
func (r *Environment) end(ctx context.Context, module Module, name string, running *embedded.Component) error {
	if name == module.Host().Name {
		return r.terminate(ctx, module, running)
	}
	return running.Terminate(ctx)
}

// StopOperators stops the host operators, the controllers, and the stand-in of the cluster-version-operator.
func (r *Environment) StopOperators(ctx context.Context) error {
	for _, module := range AllModules() {
		for _, name := range []string{module.Host().Name, module.Controller().Name} {
			if running := r.Cluster.Program(name); running != nil {
				if err := r.end(ctx, module, name, running); err != nil {
					return err
				}
			}
		}
	}
	if r.endVersionOperator == nil {
		return nil
	}
	end := r.endVersionOperator
	r.endVersionOperator = nil
	return end()
}
