package checks

import (
	"context"
	"io"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/report"
)

// Target is a cluster to look at, and what can be done to it besides what its API allows. What is nil cannot be done there; checks that
// need it are skipped and say so.
type Target struct {
	// Config connects with the rights that the run has, and no faster than it allows.
	Config *rest.Config
	// Scenario and Description name the cluster in the report, Variant what shaped it ("sno", "baseline" or empty), Provider where it came from.
	Scenario, Description, Variant, Provider string
	// Expected are the topologies that the cluster was set up with; empty where nobody knows.
	Expected report.Modes
	// PayloadNamespaces are those whose objects are looked at as OpenShift's own; none means the function of that name.
	PayloadNamespaces []string
	Times             Times
	// Image is what copied Deployments run; nothing is asked of it but that it keeps running. Empty: one of which the nodes run a shell already, or CopyImage.
	Image string
	// Progress is told what happens.
	Progress io.Writer

	// RestartNode restarts a node and returns when it is Ready again.
	RestartNode func(ctx context.Context, node string) error
	// SetTopology writes both topologies into the status of the Infrastructure object, and makes nodes that the new one needs; Undo is asked for the old one.
	SetTopology func(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error
	// Outage takes the API server away and brings it back after the time.
	Outage func(ctx context.Context, length time.Duration) error
	// MayDrain says that nodes may ask for drains: nobody on them would restart them afterwards.
	MayDrain bool
	// RestartOperator restarts whatever shapes the operands of a module: the stock operator and our controller.
	RestartOperator func(ctx context.Context, module string) error
	// Logs writes the log of every component into a folder.
	Logs func(folder string) error
	// Stop takes the cluster away, where the run has made it. Nil: it stays.
	Stop func()
}
