// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	"github.com/solonode/sno/testcluster/embedded"
)

// RestartOperator restarts a module's host operator and controller, if they run, with the same arguments.
func (s *ScenarioCluster) RestartOperator(ctx context.Context, module Module) error {
	for _, name := range []string{module.Host().Name, module.Controller().Name} {
		running := s.Cluster.Program(name)
		if running == nil {
			continue
		}
		if err := s.end(ctx, module, name, running); err != nil {
			return err
		}
		if err := running.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end ends a module's host or controller.
func (s *ScenarioCluster) end(ctx context.Context, module Module, name string, running *embedded.Component) error {
	if name == module.Host().Name {
		return s.terminate(ctx, module, running)
	}
	return running.Terminate(ctx)
}

// StopOperators stops the host operators, the controllers, and the stand-in of the cluster-version-operator.
func (s *ScenarioCluster) StopOperators(ctx context.Context) error {
	for _, module := range AllModules() {
		for _, name := range []string{module.Host().Name, module.Controller().Name} {
			if running := s.Cluster.Program(name); running != nil {
				if err := s.end(ctx, module, name, running); err != nil {
					return err
				}
			}
		}
	}
	return s.stopVersionOperator()
}
