package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/patch"
)

func newRelease(p *program) *cobra.Command {
	var dryRun string
	command := &cobra.Command{
		Use:   "release MODULE...",
		Short: "Give everything back that a module owns",
		Long: `Give back every field that a module owns: values that were taken over go back to whom they were taken from, the rest is left to the
API's defaults or to its other owners.

A controller that still runs would patch again, and so would the next apply. To keep a module away for good, put the annotation
` + patch.OptOutAnnotation + ` with the module's name on the object; then the controller itself gives everything back.`,
		Example: examples(`
			# What would be given back
			kubectl sno release ingress --dry-run=server
			# Give it back
			kubectl sno release ingress
			# Keep the controller away
			kubectl -n openshift-ingress-operator annotate ingresscontroller default ` + patch.OptOutAnnotation + `=ingress`),
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return moduleNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	out := bindOutput(command)
	modules := newChoice(command, false)
	bindDryRun(command, &dryRun)
	command.RunE = func(command *cobra.Command, args []string) error {
		modules.names = args
		chosen, err := p.prepare(out, modules)
		if err != nil {
			return err
		}
		if err := p.carryOut(command.Context(), out, chosen, work{dryRun: dryRun, releasing: true, kind: "Release"}); err != nil {
			return err
		}
		if dryRun == "none" {
			fmt.Fprintln(p.ErrOut, "A controller that still runs patches again; the annotation "+patch.OptOutAnnotation+" keeps it away.")
		}
		return nil
	}
	return command
}
