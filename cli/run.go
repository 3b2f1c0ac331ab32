// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/cli/operatorcondition"
	"github.com/solonode/sno/patch/run"
)

// processName is in the Lease, events and the user agent.
const processName = "kubectl-sno"

func newRun(p *program) *cobra.Command {
	options := run.Options{}
	command := newCommand("run", "Run the controllers, all in one process", `
Run the controllers of all modules, or of those named, in one process until it is stopped. They keep the patches in force, follow
changes of the topology, and report conditions on the operators' own resources.

One process leads through a Lease, whose durations follow the topology. Outside a cluster, name the namespace of the Lease.`, `
		# From a workstation
		kubectl sno run --leader-elect-resource-namespace=openshift-config-operator --metrics-bind-address=0
		# Two modules, as a dry run
		kubectl sno run --modules ingress,console --dry-run --leader-elect=false`, p.bindModules)
	bindGoFlags(command, "", options.BindFlags)
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := p.selectedModules()
		if err != nil {
			return err
		}
		if err := options.Validate(); err != nil {
			return err
		}
		config, err := p.config()
		if err != nil {
			return err
		}
		condition, err := operatorcondition.FromEnvironment(options.LeaderElectNamespace)
		if err != nil {
			return err
		}
		if condition != nil {
			chosen = append(chosen, condition)
		}
		p.log(command, true)
		err = run.Run(command.Context(), config, processName, options, chosen...)
		if errors.Is(err, run.ErrRestart) {
			return startAgain(err)
		}
		return err
	}
	return command
}

// startAgain replaces the process by a new one with the same arguments; it returns only if that fails, as it does on
// Windows.
func startAgain(cause error) error {
	klog.Background().Info("Starting again", "cause", cause.Error())
	path, err := os.Executable()
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("%w; start this command again (%w)", cause, err)
}
