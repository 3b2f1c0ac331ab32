// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"io"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/versionoperator"
	"github.com/solonode/sno/testcluster/scenario"
)

// Attach returns a ScenarioCluster on an existing empty cluster. Host operators run outside of it as processes;
// controllers do too, or are its pods. There is no canary, whose image is not available, and a router counts as
// available after one second.
func Attach(c *embedded.Cluster, s scenario.Scenario, progress io.Writer) *ScenarioCluster {
	if progress == nil {
		progress = io.Discard
	}
	return &ScenarioCluster{Cluster: c, Scenario: s, progress: progress, hosts: map[Module][]string{}, supervisor: newSupervisor()}
}

// Prepare installs what a module's controller and host need. RunController and RunHost do so by themselves.
func (s *ScenarioCluster) Prepare(ctx context.Context, module Module) error {
	if install := modules[module].install; install != nil {
		return install(ctx, s.Cluster)
	}
	return nil
}

// RunQuorumGuard runs the stand-in of the cluster-version-operator, which installs etcd's quorum guard as old releases
// do, until Stop.
func (s *ScenarioCluster) RunQuorumGuard(ctx context.Context) error {
	return s.runVersionOperator(ctx, []versionoperator.Manifest{versionoperator.Guard, versionoperator.GuardBudget})
}
