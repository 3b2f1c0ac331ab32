// SPDX-License-Identifier: Apache-2.0

// Package cli implements kubectl-sno. Each command runs the modules on a cluster, a rehearsal of it (package rehearsal)
// or a must-gather (package mustgather), and prints the result.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	approver "github.com/solonode/sno/approver/controller"
	auth "github.com/solonode/sno/auth/controller"
	console "github.com/solonode/sno/console/controller"
	etcdguard "github.com/solonode/sno/etcdguard/controller"
	ingress "github.com/solonode/sno/ingress/controller"
	machineconfig "github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch/controller"
)

// exit is the exit code of a command that has printed everything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

const (
	exitError     exit = 1 // diff: there are differences
	exitDiffError exit = 2
	exitPartial   exit = 3 // the must-gather is incomplete
)

type program struct {
	genericiooptions.IOStreams
	cluster    *genericclioptions.ConfigFlags
	verbosity  int
	output     output
	all        []controller.Module
	modules    []string
	mustGather string
	dryRun     string
	force      bool
}

// New returns the root command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	p := &program{IOStreams: streams, cluster: genericclioptions.NewConfigFlags(true), all: []controller.Module{
		&ingress.Module{}, &etcdguard.Module{}, &machineconfig.Module{}, &console.Module{}, &auth.Module{}, &approver.Module{},
	}}
	p.cluster.Namespace, p.cluster.CacheDir = nil, nil // every object has its own namespace, and discovery is not cached
	root := &cobra.Command{
		Use:           "kubectl-sno",
		Short:         "Plan, make and undo the changes that single-node OpenShift needs",
		Long:          long,
		Version:       releaseVersion(),
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sno"},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			p.log(command, p.verbosity > 0)
			_, err := p.output.printer()
			return err
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	p.cluster.AddFlags(root.PersistentFlags())
	root.PersistentFlags().IntVarP(&p.verbosity, "v", "v", 0, "Log level on standard error; 0 logs nothing.")
	root.AddCommand(
		newTopology(p), newPlan(p), newDiff(p), newApply(p), newStatus(p), newRelease(p), newRender(p), newRun(p), newWaitForStable(p), newFleet(p), newManPages(),
	)
	return root
}

const long = `kubectl sno plans, makes and undoes the changes of the sno modules.

Most commands work on a cluster and take the flags of kubectl. Commands that only read also accept the output of
"oc adm must-gather" instead of a cluster (--must-gather).

Exit codes: 0 for success, 1 for an error, 3 for an incomplete must-gather. diff returns 0 without differences, 1 with differences and
2 for an error. fleet returns 4 to 6 for clusters that are not settled.`

// log sends all logs to standard error, or discards them.
func (p *program) log(command *cobra.Command, on bool) {
	logger := logr.Discard()
	if on {
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(p.ErrOut), textlogger.Verbosity(p.verbosity)))
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	command.SetContext(logr.NewContext(command.Context(), logger))
}

// complete registers completions of a flag for one value or a comma-separated list.
func complete(command *cobra.Command, name string, values ...string) {
	// The only error is that of an unknown flag.
	_ = command.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var out []string
		for _, value := range values {
			out = append(out, before+value)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

func newCommand(use, short, long, examples string, bind ...func(*cobra.Command)) *cobra.Command {
	examples = "  " + strings.ReplaceAll(strings.TrimSpace(examples), "\n\t\t", "\n  ")
	command := &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(long), Example: examples, Args: cobra.NoArgs}
	for _, b := range bind {
		b(command)
	}
	return command
}

var errUnknownModule = errors.New("unknown module")

func (p *program) moduleNames() []string {
	var names []string
	for _, m := range p.all {
		names = append(names, m.Name())
	}
	return names
}

func (p *program) bindModules(command *cobra.Command) {
	command.Flags().StringSliceVar(&p.modules, "modules", nil, "Comma-separated modules; all by default: "+strings.Join(p.moduleNames(), ", ")+".")
	complete(command, "modules", p.moduleNames()...)
	p.bindModuleFlags(command)
}

func (p *program) bindModuleFlags(command *cobra.Command) {
	for _, m := range p.all {
		bindGoFlags(command, m.Name()+": ", m.BindFlags)
	}
}

// bindGoFlags declares flags of package flag, except those of the root command.
func bindGoFlags(command *cobra.Command, prefix string, bind func(*flag.FlagSet)) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	bind(flags)
	flags.VisitAll(func(f *flag.Flag) {
		if !slices.Contains([]string{"kubeconfig", "v", "vmodule"}, f.Name) {
			added := pflag.PFlagFromGoFlag(f)
			added.Usage = prefix + f.Usage
			command.Flags().AddFlag(added)
		}
	})
}

func (p *program) checkNames() error {
	for _, name := range p.modules {
		if !slices.Contains(p.moduleNames(), name) {
			return fmt.Errorf("%w %q; use one of: %s", errUnknownModule, name, strings.Join(p.moduleNames(), ", "))
		}
	}
	return nil
}

func (p *program) selectedModules() ([]controller.Module, error) {
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	var modules []controller.Module
	for _, m := range p.all {
		if len(p.modules) > 0 && !slices.Contains(p.modules, m.Name()) {
			continue
		}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		modules = append(modules, m)
	}
	return modules, nil
}
