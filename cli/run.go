package cli

import (
	"flag"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/patch/manager"
)

// processName is that of the Lease and of events.
const processName = "kubectl-sno"

func newRun(p *program) *cobra.Command {
	options := manager.Options{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers, all in one process",
		Long: `Run the controllers of all modules, or of those named, in one process, until it is stopped. They keep the patches in force, follow the
topology when it changes, and show conditions on the operators' own resources.

One process leads by a Lease, whose durations follow the topology. Outside a cluster, say where that is.`,
		Example: examples(`
			# In a pod
			kubectl-sno run
			# From a workstation
			kubectl sno run --leader-elect-resource-namespace=openshift-config-operator --metrics-bind-address=0
			# Two modules, and nothing written
			kubectl sno run --modules ingress,console --dry-run --leader-elect=false`),
		Args: cobra.NoArgs,
	}
	modules := newChoice(command, true)
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	options.BindFlags(flags)
	flags.VisitAll(func(f *flag.Flag) {
		// kubectl's flag for the cluster and our own for verbosity are declared already.
		if f.Name != "kubeconfig" && f.Name != "v" && f.Name != "vmodule" {
			command.Flags().AddFlag(pflag.PFlagFromGoFlag(f))
		}
	})
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := modules.chosen()
		if err != nil {
			return err
		}
		if err := options.Validate(); err != nil {
			return err
		}
		config, err := p.cluster.ToRESTConfig()
		if err != nil {
			return fmt.Errorf("finding the cluster: %w", err)
		}
		config.UserAgent = processName
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(p.ErrOut), textlogger.Verbosity(p.verbosity)))
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
		return manager.Run(logr.NewContext(command.Context(), logger), config, processName, options, chosen...)
	}
	return command
}
