// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/render/document"
	"github.com/solonode/sno/render/inputs"
)

const (
	exitError = 1
	exitInput = 2 // also for an unreadable payload and an unwritable output
	exitStop  = 130
)

const long = `sno-render renders the static pods of a control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
The input is a folder with the resources of config.openshift.io and the control plane's Nodes, as an installer writes them. The
control loops of the operators run over it in memory. The output is a folder with
  manifests/        all objects, to be created on the new API server in the order of their names
  files/            the files of the static pods, to be copied to the root of the node
  auth/             kubeconfigs: of the administrator, the same on the node (kubeconfig-localhost), and with which the node's kubelet
                    requests its certificate (kubeconfig-kubelet)
  input/            the input; sno-render.yaml has the flags, for sno-render rotate`

// Main runs the program with the arguments after its name and returns the exit code: 0, 1 for an error, 2 for an
// invalid input, an output that cannot be written or a wrong flag, 130 after an interrupt.
func Main(ctx context.Context, arguments []string, out, errs io.Writer) int {
	// Errors are returned; library-go's logs are for operators.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	root := New(out, errs)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	var faults document.Faults
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "sno-render: interrupted, nothing was written")
		return exitStop
	case errors.As(err, &faults):
		if errors.Is(err, errOutput) {
			fmt.Fprintf(errs, "%v\nsno-render: nothing was written\n", err)
			return exitInput
		}
		fmt.Fprintf(errs, "%s\nsno-render: the input has %s, nothing was written\n", faults.Error(), count(len(faults), "fault"))
		return exitInput
	case errors.Is(err, errUsage) || errors.Is(err, errPayload) || errors.Is(err, errOutput):
		fmt.Fprintln(errs, "sno-render:", err)
		return exitInput
	default:
		fmt.Fprintln(errs, "sno-render:", err)
		return exitError
	}
}

var errUsage = errors.New("see sno-render --help")

// New returns the command.
func New(out, errs io.Writer) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "sno-render --input FOLDER --output FOLDER",
		Short:         "Render the static pods of a control plane",
		Long:          long,
		Version:       releaseVersion(),
		Args:          cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error { return o.render(c.Context(), out, errs) },
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; %w", err, errUsage) })
	root.CompletionOptions.HiddenDefaultCmd = true
	o.bind(root.Flags())
	root.AddCommand(newRotate(out, errs), newFields(out), newManPages())
	return root
}

func newFields(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "fields",
		Short: "Print the effect of each field of the input as Markdown tables",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return inputs.WriteMarkdown(out, inputs.Fields)
		},
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
