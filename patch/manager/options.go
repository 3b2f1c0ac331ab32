package manager

import (
	"errors"
	"flag"
	"fmt"

	"k8s.io/klog/v2/textlogger"
)

// ErrOptions is returned for flags that do not make sense.
var ErrOptions = errors.New("invalid flags")

// Where sub-conditions go.
const (
	// StatusOperator shows them on the operator's own resource.
	StatusOperator = "operator"
	// StatusNone shows none; events and metrics still tell.
	StatusNone = "none"
)

// Options are the flags that every controller has.
type Options struct {
	// Kubeconfig is a file; empty means the environment (KUBECONFIG, then in-cluster).
	Kubeconfig string
	// MetricsBindAddress serves metrics over TLS with authentication and authorization; "0" for none.
	MetricsBindAddress string
	// MetricsSecure off serves plain HTTP without authentication, for a process that nobody else can reach.
	MetricsSecure bool
	// HealthProbeBindAddress serves /healthz and /readyz; "0" for none.
	HealthProbeBindAddress string
	// LeaderElect makes one of several processes the active one.
	LeaderElect bool
	// LeaderElectNamespace holds the Lease; empty means the namespace that the process runs in.
	LeaderElectNamespace string
	// DryRun asks the API server what would happen and writes nothing.
	DryRun bool
	// ForceConflicts takes contested fields from whoever owns them, and remembers what was there.
	ForceConflicts bool
	// StatusTarget is StatusOperator or StatusNone.
	StatusTarget string
	// Logging is the logger's own configuration, set by BindFlags.
	Logging *textlogger.Config
}

// BindFlags declares the flags, with the receiver's values as defaults where they are set.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	def := func(value, otherwise string) string {
		if value != "" {
			return value
		}
		return otherwise
	}
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path to a kubeconfig; without it KUBECONFIG, then the pod's service account.")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", def(o.MetricsBindAddress, ":8443"), "Address of the metrics; 0 turns them off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics over TLS, to authenticated and authorized clients only.")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", def(o.HealthProbeBindAddress, ":8081"), "Address of /healthz and /readyz; 0 turns them off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Elect a leader through a Lease. Its durations follow the cluster's topology.")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-resource-namespace", o.LeaderElectNamespace, "Namespace of the Lease; without it the pod's own.")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "Ask the API server what would happen, report it, and write nothing.")
	flags.BoolVar(&o.ForceConflicts, "force-conflicts", o.ForceConflicts, "Take fields that somebody else owns. What was there is remembered and put back on release.")
	flags.StringVar(&o.StatusTarget, "status-target", def(o.StatusTarget, StatusOperator), "Where sub-conditions are shown: operator or none.")
	o.Logging = textlogger.NewConfig()
	o.Logging.AddFlags(flags)
}

// Validate reports flags that do not make sense.
func (o *Options) Validate() error {
	switch o.StatusTarget {
	case StatusOperator, StatusNone:
		return nil
	}
	return fmt.Errorf("%w: --status-target=%s; want %s or %s", ErrOptions, o.StatusTarget, StatusOperator, StatusNone)
}
