// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/topology"
)

const name = "fleet-controller"

var errArgument = errors.New("unexpected argument")

type options struct {
	kubeconfig, probes, namespace string
	elect, grant                  bool
	logging                       *textlogger.Config
}

// Main runs the manager until SIGINT or SIGTERM. It returns the exit code: 0, 1 after a failure, 2 for invalid flags.
func Main(args []string, out io.Writer) int {
	o, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	logger := textlogger.NewLogger(o.logging)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(logr.NewContext(ctrl.SetupSignalHandler(), logger), o); err != nil {
		logger.Error(err, "Controller failed")
		return 1
	}
	logger.Info("Controller stopped")
	return 0
}

func parse(args []string, out io.Writer) (options, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	o := options{logging: textlogger.NewConfig()}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to a kubeconfig of the hub; without it KUBECONFIG, then the pod's service account.")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 turns them off.")
	flags.BoolVar(&o.elect, "leader-elect", true, "Elect a leader through a Lease.")
	flags.StringVar(&o.namespace, "leader-elect-resource-namespace", "", "Namespace of the Lease; the default is the pod's own.")
	flags.BoolVar(&o.grant, "grant-rights", true, "Grant the rights to the ManifestWorks of each cluster, by one that the work agent applies "+
		"with its own rights; false if somebody else grants them.")
	o.logging.AddFlags(flags)
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%w: %q", errArgument, flags.Arg(0))
		fmt.Fprintln(out, err)
	}
	return o, err
}

func run(ctx context.Context, o options) error {
	find := ctrl.GetConfig
	if o.kubeconfig != "" {
		find = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", o.kubeconfig) }
	}
	config, err := find()
	if err != nil {
		return fmt.Errorf("finding the hub (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	config.QPS = -1 // the API server limits requests itself
	class := topology.LeaderElection(configv1.HighlyAvailableTopologyMode)
	m, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: o.probes,
		LeaderElection:         o.elect, LeaderElectionID: fleet.Manager, LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &class.LeaseDuration, RenewDeadline: &class.RenewDeadline, RetryPeriod: &class.RetryPeriod,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	err = errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping),
		m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if err := start(ctx, config, o.grant); err != nil && ctx.Err() == nil {
				return err
			}
			<-ctx.Done()
			return nil
		})))
	if err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}
	return m.Start(ctx)
}
