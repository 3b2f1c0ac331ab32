// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/solonode/sno/cli/hub"
	"github.com/solonode/sno/fleet/rollout"
)

var (
	errNoCluster = errors.New("no cluster is selected")
	errConfirm   = errors.New("not confirmed")
	errHubFlags  = errors.New("unknown value")
)

// unconfirmed is how many clusters a command changes without a question.
const unconfirmed = 10

// fleet has the flags of several commands.
type fleet struct {
	*program
	selector string
	yes      bool
}

func newFleet(p *program) *cobra.Command {
	command := newCommand("fleet", "Show and change the clusters of a fleet from their hub", `
Show and change the clusters of a fleet, with the kubeconfig of their hub of Open Cluster Management.

Exit codes: 0 if every cluster is settled, opted out or a dry run, 4 if some change or wait for their turn, 5 if some do not report, 6 if a
patch is not in force or something was refused, 1 for an error.`, `
		# The clusters of the fleet, the worst first
		kubectl sno fleet status`)
	command.AddCommand(newFleetStatus(p), newFleetPlan(p), newFleetOptOut(p), newFleetUndo(p), newFleetCheck(p), newFleetReport(p))
	return command
}

func (f *fleet) bindSelector(command *cobra.Command) {
	command.Flags().StringVarP(&f.selector, "selector", "l", "", "Only clusters whose ManagedCluster has these labels.")
	command.Args = cobra.ArbitraryArgs
}

func (f *fleet) bindYes(command *cobra.Command) {
	command.Flags().BoolVar(&f.yes, "yes", false, fmt.Sprintf("Do not ask for the number of clusters if there are more than %d.", unconfirmed))
}

func (f *fleet) connectHub() (*hub.Hub, error) {
	if _, err := labels.Parse(f.selector); err != nil {
		return nil, fmt.Errorf("%w of --selector: %w", errHubFlags, err)
	}
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // a command sends a few requests for each cluster and ends
	return hub.Connect(config)
}

// clusters returns those that have the labels and, if any are given, the names. Each name must exist.
func (f *fleet) clusters(ctx context.Context, h *hub.Hub, names []string) ([]clusterv1.ManagedCluster, error) {
	all, err := h.Clusters(ctx, f.selector)
	if err != nil {
		return nil, err
	}
	var chosen []clusterv1.ManagedCluster
	missing := slices.Clone(names)
	for _, c := range all {
		if len(names) == 0 || slices.Contains(names, c.Name) {
			chosen = append(chosen, c)
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.Name })
		}
	}
	return chosen, f.found(len(chosen), missing)
}

func (f *fleet) found(n int, missing []string) error {
	with := ""
	if f.selector != "" {
		with = " with --selector=" + f.selector
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("%w: the hub has no ManagedCluster %s%s", errNoCluster, strings.Join(missing, ", "), with)
	case n == 0:
		return fmt.Errorf("%w: the hub has no ManagedCluster%s", errNoCluster, with)
	}
	return nil
}

// confirm wants the number of clusters to be typed if there are many.
func (f *fleet) confirm(n int, what string) error {
	if n <= unconfirmed || f.yes {
		return nil
	}
	fmt.Fprintf(f.ErrOut, "%d clusters would be %s. Type the number of clusters to go on: ", n, what)
	typed, err := bufio.NewReader(f.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if strings.TrimSpace(typed) != strconv.Itoa(n) {
		return fmt.Errorf("%w: %d clusters would be %s; type %d, or add --yes", errConfirm, n, what, n)
	}
	return nil
}

// checkOptOut returns why the label would not keep clusters out of the fleet.
func checkOptOut(ctx context.Context, h *hub.Hub) error {
	strategy, err := h.Strategy(ctx)
	if err != nil || strategy == nil {
		return err
	}
	placements, err := h.Placements(ctx, strategy)
	if err != nil {
		return err
	}
	for _, p := range placements {
		if err := rollout.CheckPlacement(p); errors.Is(err, rollout.ErrOptOut) {
			return err
		}
	}
	return nil
}
