package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/solonode/sno/cli/stable"
)

func newWaitForStable(p *program) *cobra.Command {
	options := stable.Options{Every: 10 * time.Second, Remind: time.Minute, Progress: p.ErrOut}
	command := &cobra.Command{
		Use:   "wait-for-stable",
		Short: "Wait until the cluster has come to rest, so that a workload can be put on it",
		Long: `Wait until nothing has moved for a whole period: the ClusterVersion, cluster operators and their versions, machine-config pools, nodes,
certificate requests of nodes, rollouts in OpenShift's namespaces, and the pods of the API server. What changes between two looks, such as
a restart, starts the period again.

What the cluster does not serve is left out and said to be. What cannot be read is not known, and what is not known is not stable.

Progress goes to standard error. At the limit of time what still moves is printed, and the exit code is 1.`,
		Example: examples(`
			# After an installation
			kubectl sno wait-for-stable
			# On a cluster that restarts a lot: half an hour of quiet, within three hours
			kubectl sno wait-for-stable --for=30m --timeout=3h
			# Is it at rest now? Give up after one look
			kubectl sno wait-for-stable --for=0 --timeout=1s
			# What still moves, for a script
			kubectl sno wait-for-stable -o jsonpath='{.moving[*].object}'`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	command.Flags().DurationVar(&options.Quiet, "for", 5*time.Minute, "For how long nothing may move.")
	command.Flags().DurationVar(&options.Timeout, "timeout", time.Hour, "After what time to give up.")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := errors.Join(out.check(), options.Validate()); err != nil {
			return err
		}
		cluster, err := p.connect()
		if err != nil {
			return err
		}
		outcome, err := stable.Wait(command.Context(), func(ctx context.Context) stable.State { return stable.Gather(ctx, cluster) }, options)
		if err != nil && !errors.Is(err, stable.ErrNotStable) {
			return err
		}
		if printing := out.print(p, stableAnswer(&outcome)); printing != nil {
			return printing
		}
		if err != nil {
			return fmt.Errorf("%w after %s", stable.ErrNotStable, outcome.Waited.Duration) // the list is in the answer
		}
		return nil
	}
	return command
}

func stableAnswer(outcome *stable.Outcome) answer {
	a := answer{kind: "Stability", value: outcome}
	if outcome.AtRest() {
		a.table = table("STABLE", "QUIET", "WAITED")
		row(a.table, strconv.FormatBool(outcome.Stable), outcome.Quiet.Duration.String(), outcome.Waited.Duration.String())
		return a
	}
	a.table = table("OBJECT", "FOR", "WAITS FOR")
	for _, m := range outcome.Moving {
		row(a.table, m.Object, duration.HumanDuration(time.Since(m.Since.Time)), m.WaitsFor)
		a.names = append(a.names, m.Object)
	}
	for _, u := range outcome.Unknown {
		row(a.table, u.Kind, "-", "not known: "+u.Error)
	}
	return a
}
