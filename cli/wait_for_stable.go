// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/solonode/sno/cli/stable"
)

func newWaitForStable(p *program) *cobra.Command {
	options := stable.Options{Progress: p.ErrOut}
	command := newCommand("wait-for-stable", "Wait until the cluster is stable and ready for workloads", `
Wait until nothing has changed for a whole period: the ClusterVersion, cluster operators and their versions, machine-config pools, nodes,
certificate requests of nodes, rollouts in the namespaces of OpenShift, and the pods of the API server. A change between two checks, such
as a restart, starts the period again.

Kinds that the cluster does not serve are skipped. While a kind cannot be read, the cluster does not count as stable.

Progress is printed on standard error. At the timeout the command prints what is still changing and returns 1.`, `
		# On a cluster that restarts a lot: half an hour without a change, within three hours
		kubectl sno wait-for-stable --for=30m --timeout=3h
		# Check once
		kubectl sno wait-for-stable --for=0 --timeout=1s
		# What is still changing, for a script
		kubectl sno wait-for-stable -o jsonpath='{.unstable[*].object}'`, p.bindOutput)
	command.Flags().DurationVar(&options.Quiet, "for", 5*time.Minute, "How long nothing may change.")
	command.Flags().DurationVar(&options.Timeout, "timeout", time.Hour, "How long to wait.")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := options.Validate(); err != nil {
			return err
		}
		cluster, err := p.connect()
		if err != nil {
			return err
		}
		outcome, err := stable.Wait(command.Context(), cluster, options)
		if err != nil && !errors.Is(err, stable.ErrNotStable) {
			return err
		}
		return errors.Join(p.print(stableAnswer(&outcome)), err)
	}
	return command
}

func stableAnswer(outcome *stable.Outcome) answer {
	a := answer{kind: "Stability", value: outcome}
	if outcome.IsStable() {
		a.table = table("STABLE", "STABLE FOR", "WAITED")
		row(a.table, strconv.FormatBool(outcome.Stable), outcome.Quiet.Duration.String(), outcome.Waited.Duration.String())
		return a
	}
	a.table = table("OBJECT", "FOR", "WAITS FOR")
	for _, c := range outcome.Unstable {
		row(a.table, c.Object, duration.HumanDuration(time.Since(c.Since.Time)), c.WaitsFor)
		a.names = append(a.names, c.Object)
	}
	for _, u := range outcome.Unreadable {
		row(a.table, u.Kind, "-", "cannot be read: "+u.Error)
	}
	return a
}
