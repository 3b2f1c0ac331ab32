// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"flag"

	"k8s.io/klog/v2/textlogger"

	"github.com/solonode/sno/patch/controller"
)

// Options are the flags of every process.
type Options struct {
	controller.Options
	Kubeconfig string // empty for $KUBECONFIG, then in-cluster
	// MetricsBindAddress is "0" for no metrics. MetricsSecure requires TLS, authentication and authorization.
	MetricsBindAddress     string
	MetricsSecure          bool
	HealthProbeBindAddress string // of /healthz and /readyz; "0" for none
	LeaderElect            bool
	LeaderElectNamespace   string             // of the Lease; empty for the namespace of the pod
	Logging                *textlogger.Config // set by BindFlags
}

// BindFlags declares the flags. The current values are the defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path to a kubeconfig; without it KUBECONFIG, then the pod's service account.")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", cmp.Or(o.MetricsBindAddress, ":8443"),
		"Address of the metrics; 0 turns them off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics over TLS, to authenticated and authorized clients only.")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", cmp.Or(o.HealthProbeBindAddress, ":8081"),
		"Address of /healthz and /readyz; 0 turns them off.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Elect a leader through a Lease. Its durations follow the cluster's topology.")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-resource-namespace", o.LeaderElectNamespace,
		"Namespace of the Lease; the default is the pod's own.")
	o.Options.BindFlags(flags)
	o.Logging = textlogger.NewConfig()
	o.Logging.AddFlags(flags)
}
