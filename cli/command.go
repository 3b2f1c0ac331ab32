package cli

import (
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The exit codes beside 0.
const (
	exitError   = 1 // also: diff found differences
	exitDiff    = 2 // diff met with an error
	exitPartial = 3 // a must-gather was not whole
)

// exit is an error with the code that the program ends with. Without an error, everything there is to say has been said.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return "exit code " + strconv.Itoa(e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// program is what all verbs share.
type program struct {
	genericiooptions.IOStreams
	cluster   *genericclioptions.ConfigFlags
	verbosity int
}

// New is the whole command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	p := &program{IOStreams: streams, cluster: genericclioptions.NewConfigFlags(true)}
	p.cluster.Namespace, p.cluster.CacheDir = nil, nil // every object has its own namespace, and discovery is not cached
	root := &cobra.Command{
		Use:           "kubectl-sno",
		Short:         "See, change and undo what single-node OpenShift needs to be different",
		Long:          long,
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sno"},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			command.SetContext(logr.NewContext(command.Context(), p.logger()))
			return nil
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	p.cluster.AddFlags(root.PersistentFlags())
	root.PersistentFlags().IntVarP(&p.verbosity, "v", "v", 0, "How much is logged on standard error; 0 for nothing.")
	root.AddCommand(
		newTopology(p), newPlan(p), newDiff(p), newApply(p), newStatus(p), newRelease(p), newRender(p), newRun(p), newWaitForStable(p),
	)
	return root
}

const long = `kubectl sno shows what the modules of sno would change on a cluster, changes it and takes it back.

Most verbs work on a cluster, by the flags of kubectl. Those that only look also read what "oc adm must-gather" wrote, without a
cluster (--must-gather).

Exit codes: 0 when all is well, 1 after an error, 3 when a must-gather was not whole. diff ends with 0 without differences, 1 with
differences, and more after an error.`

// logger writes to standard error.
func (p *program) logger() logr.Logger {
	logger := logr.Discard()
	if p.verbosity > 0 {
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(p.ErrOut), textlogger.Verbosity(p.verbosity)))
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger
}

// complete offers the values for the flag. The flag exists, so there is no error.
func complete(command *cobra.Command, name string, values func() []string) {
	_ = command.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndex(typed, ","); i >= 0 {
			before = typed[:i+1]
		}
		var out []string
		for _, value := range values() {
			out = append(out, before+value)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// examples indents as cobra prints them.
func examples(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = "  " + strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
