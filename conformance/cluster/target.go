// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/report"
)

// RunLabel is on everything that a run creates; its value is the run.
const RunLabel = "sno.solonode.github.io/conformance"

// Target is a cluster, with the acts that its API alone does not allow. Checks that need an act that is nil are
// skipped.
type Target struct {
	// Config limits the rate of requests.
	Config *rest.Config
	// Scenario is empty for the infrastructure name. Variant is "sno", "vendored", "baseline" or empty.
	Scenario, Description, Variant, Provider string
	// ControlPlaneOrigin is where the control plane's programs are from; empty if unknown.
	ControlPlaneOrigin string
	// Operators returns the host operators; nil if the cluster was not set up for the run.
	Operators func() []report.Operator
	// IdleOperators returns the modules of given operators that have not written anything yet that only they write. Checks
	// of these modules, and of all operands together, are inconclusive. Nil if no operator was given.
	IdleOperators func(ctx context.Context) ([]string, error)
	// Expected are the topologies of the installation; empty if unknown.
	Expected report.Modes
	// PayloadNamespaces are those of OpenShift's own objects; empty for the function of that name.
	PayloadNamespaces []string
	// Times are the limits of the run; zero for RealTimes.
	Times Times
	// Image is what copies run; it must keep running. Empty for an image with a shell that runs on the nodes, or
	// runner.CopyImage.
	Image    string
	Progress io.Writer

	// RestartNode restarts a node. The run waits until the node has another boot ID and is Ready.
	RestartNode func(ctx context.Context, node string) error
	// SetTopology writes the status of the Infrastructure object, and creates the nodes that the topology needs.
	SetTopology func(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error
	// Outage stops the API server and starts it after length. The run measures how long it did not answer.
	Outage func(ctx context.Context, length time.Duration) error
	// Upgrade begins or performs an upgrade. The run waits until the history of the ClusterVersion has a newer entry that
	// is Completed.
	Upgrade func(ctx context.Context) error
	// MayDrain is set if nodes may request drains: no daemon on them would restart them.
	MayDrain bool
	// RestartOperator restarts the stock operator and the controller of a module.
	RestartOperator func(ctx context.Context, module string) error
	// Logs writes the logs of all components into a folder.
	Logs func(folder string) error
}

// Progressf writes a line to Progress.
func (t Target) Progressf(format string, args ...any) {
	if t.Progress != nil {
		_, _ = fmt.Fprintf(t.Progress, format+"\n", args...)
	}
}
