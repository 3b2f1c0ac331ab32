package embeddedtarget

import (
	"context"
	"io"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

const (
	// Provider is what the report calls this.
	Provider = "embedded"
	// image is what copied Deployments run: nothing is pulled here.
	image = "pause"
)

// Options say which cluster.
type Options struct {
	// Scenario is a name of package scenario.
	Scenario string
	Variant  Variant
	// IgnoreConditions hands the cluster over as soon as nothing moves, whatever our controllers say of it: whoever runs wrong versions of them wants to know
	// what the checks say.
	IgnoreConditions bool
	// RealMinReadySeconds has a router count as available when it has been ready for 30 s, as in life, and not for one. A cluster and its checks take half a
	// minute longer for each of its rollouts.
	RealMinReadySeconds bool
	// APIServer are further arguments of the API server.
	APIServer []string
	// Keep leaves the cluster's folder.
	Keep bool
	// Progress is told what happens; nil for nobody.
	Progress io.Writer
	// Times are those of the run; zero for checks.SimulatedTimes.
	Times checks.Times
}

// Start starts a cluster and returns when it has come to rest, its day-2 workers with it. It ends with Target.Stop, with the context, and with
// this process.
func Start(ctx context.Context, o Options) (checks.Target, error) {
	if o.Times == (checks.Times{}) {
		o.Times = checks.SimulatedTimes()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	s, err := start(ctx, o)
	if err != nil {
		return checks.Target{}, err
	}
	return s.target(o), nil
}

func (s *system) target(o Options) checks.Target {
	return checks.Target{
		Config:   s.Cluster.RESTConfig(),
		Scenario: s.Scenario.Name, Description: s.Scenario.Description, Variant: string(o.Variant), Provider: Provider,
		Expected: report.Modes{
			ControlPlane: string(s.Scenario.ControlPlaneTopology), Infrastructure: string(s.Scenario.InfrastructureTopology),
		},
		Times: o.Times, Image: image, Progress: o.Progress,
		RestartNode: s.restartNode, SetTopology: s.setTopology, Outage: s.outage, RestartOperator: s.restartOperator,
		MayDrain: true, Logs: s.Cluster.CopyLogs, Stop: s.Stop,
	}
}
