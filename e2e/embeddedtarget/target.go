// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"io"

	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
)

const (
	// Provider is the name of these clusters in reports.
	Provider = "embedded"
	// image is the image of copied Deployments: nothing is pulled here.
	image = "pause"
)

// Options select a cluster.
type Options struct {
	Scenario string
	Variant  Variant
	// Operators are hosts instead of the stand-ins. The cluster also starts if their operands do not settle: the results
	// of the checks matter.
	Operators framework.Operators
	// RealMinReadySeconds makes a router available after 30 s as on a real cluster, not after one. Each of its rollouts
	// takes half a minute longer.
	RealMinReadySeconds bool
	// APIServer are further arguments of the API server.
	APIServer []string
	Keep      bool
	Progress  io.Writer
	// Times are those of the run; zero for cluster.SimulatedTimes.
	Times cluster.Times
}

// Start starts a cluster and returns when it has settled with its day-2 workers. It stops with Target.Stop, with the
// context, and with this process.
func Start(ctx context.Context, o Options) (cluster.Target, error) {
	if o.Times == (cluster.Times{}) {
		o.Times = cluster.SimulatedTimes()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	s, err := start(ctx, o)
	if err != nil {
		return cluster.Target{}, err
	}
	return s.target(o), nil
}

func (s *system) target(o Options) cluster.Target {
	var namespaces []string
	if s.variant == Vendored { // what OLM installs is not of the payload, but must follow the topology here
		namespaces = append(cluster.PayloadNamespaces(), framework.OLMNamespace)
	}
	return cluster.Target{
		PayloadNamespaces: namespaces,

		Config:   s.Cluster.RESTConfig(),
		Scenario: s.Scenario.Name, Description: s.Scenario.Description, Variant: string(o.Variant), Provider: Provider,
		ControlPlaneOrigin: s.Cluster.Origin(), Operators: s.HostOperators, IdleOperators: s.idleOperators,
		Expected: report.Modes{
			ControlPlane: string(s.Scenario.ControlPlaneTopology), Infrastructure: string(s.Scenario.InfrastructureTopology),
		},
		Times: o.Times, Image: image, Progress: o.Progress,
		RestartNode: s.restartNode, SetTopology: s.setTopology, Outage: s.outage, Upgrade: s.upgrade, RestartOperator: s.restartOperator,
		MayDrain: true, Logs: s.Cluster.CopyLogs, Stop: s.Stop,
	}
}
