package harness

import (
	"context"
	"io"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/versionoperator"
	"github.com/solonode/sno/testcluster/scenario"
)

// Attach returns an Environment on a cluster that is there already, with nothing on it yet. Host operators run beside it, as processes; controllers may, or be pods of its own.
// There is no canary, whose image nobody has, and a router counts as available a second after it is ready.
func Attach(c *embedded.Cluster, s scenario.Scenario, progress io.Writer) *Environment {
	if progress == nil {
		progress = io.Discard
	}
	return &Environment{Cluster: c, Scenario: s, progress: progress, hosts: map[Module][]string{}}
}

// Prepare makes the cluster ready for a module's controller, as RunController does before it starts one.
func (r *Environment) Prepare(ctx context.Context, module Module) error {
	if install := modules[module].install; install != nil {
		return install(ctx, r.Cluster)
	}
	return nil
}

// RunQuorumGuard runs the stand-in for the cluster-version-operator, which brings etcd's quorum guard as releases of old do, until Stop.
func (r *Environment) RunQuorumGuard(ctx context.Context) error {
	return r.runVersionOperator(ctx, []versionoperator.Manifest{versionoperator.Guard, versionoperator.GuardBudget})
}
