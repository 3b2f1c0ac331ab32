// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
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

// Target returns the cluster as a target of runs.
func (s *System) Target() cluster.Target {
	var namespaces []string
	if s.variant == Vendored { // what OLM installs is not of the payload, but must follow the topology here
		namespaces = append(cluster.PayloadNamespaces(), framework.OLMNamespace)
	}
	return cluster.Target{
		PayloadNamespaces: namespaces,

		Config:   s.Cluster.RESTConfig(),
		Scenario: s.Scenario.Name, Description: s.Scenario.Description, Variant: string(s.variant), Provider: Provider,
		ControlPlaneOrigin: s.Cluster.Origin(), Operators: s.HostOperators, IdleOperators: s.idleOperators,
		Expected: report.Modes{
			ControlPlane: string(s.Scenario.ControlPlaneTopology), Infrastructure: string(s.Scenario.InfrastructureTopology),
		},
		Times: s.times, Image: image, Progress: s.progress,
		RestartNode: s.restartNode, SetTopology: s.setTopology, Outage: s.outage, Upgrade: s.upgrade, RestartOperator: s.restartOperator,
		MayDrain: true, Logs: s.Cluster.CopyLogs,
	}
}
