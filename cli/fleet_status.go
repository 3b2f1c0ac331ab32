// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/solonode/sno/fleet/overview"
)

func newFleetStatus(p *program) *cobra.Command {
	f := &fleet{program: p}
	var reasons []string
	var details bool
	var page string
	command := newCommand("status [CLUSTER...]", "Print the state of each cluster, the worst first", `
Print the state of each cluster of the fleet, the worst first: its topology, the module whose patch is not in force and the reason, since
when, the version of the controllers, and the Placement that decides about it.

The states of all modules are read only of clusters that are not settled; --details reads those of every cluster, about 150 kB of each.
That a cluster is settled is then what the manager of the add-on has reported; with --details, or while nobody holds the manager's Lease, it
is what the cluster itself has reported.`, `
		# Everything that is known, as a page for a browser
		kubectl sno fleet status --html fleet.html
		# Clusters of a region on which a person owns a field
		kubectl sno fleet status -l region=east --reason FieldOwnedByOther -o wide
		# For a script
		kubectl sno fleet status -o name || echo "not settled"`, p.bindOutput, f.bindSelector)
	command.Flags().StringSliceVar(&reasons, "reason", nil, "Only clusters with one of these reasons, of the cluster or of a module.")
	command.Flags().BoolVar(&details, "details", false, "Read the states of all modules of every cluster.")
	command.Flags().StringVar(&page, "html", "", "Also write a page to this file; it reads all --details.")
	command.RunE = func(command *cobra.Command, names []string) error {
		t, err := f.table(command, details || page != "", names)
		if err != nil {
			return err
		}
		if t = t.Filter(labels.Everything(), reasons...); len(t) == 0 {
			return fmt.Errorf("%w: none has the reason %s", errNoCluster, strings.Join(reasons, " or "))
		}
		if page != "" {
			if err := writeFile(page, func(file *os.File) error { return t.WriteHTML(file, "Fleet", time.Now()) }); err != nil {
				return err
			}
		}
		if err := p.print(fleetAnswer(t, time.Now())); err != nil {
			return err
		}
		return exitOf(t.Worst().ExitCode())
	}
	return command
}

// exitOf returns an error for an exit code other than 0.
func exitOf(code int) error {
	if code == 0 {
		return nil
	}
	return exit(code)
}

func writeFile(name string, write func(*os.File) error) error {
	file, err := os.Create(name)
	if err == nil {
		err = write(file)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// table returns the rows of the selected clusters; each name must be a cluster of the fleet.
func (f *fleet) table(command *cobra.Command, details bool, names []string) (overview.Table, error) {
	h, err := f.connectHub()
	if err != nil {
		return nil, err
	}
	if why := h.Manager(command.Context(), time.Now()); why != "" {
		details = true
		fmt.Fprintf(f.ErrOut, "The manager of the fleet does not run (%s): nothing is rolled out, repaired or released. States are read from the clusters.\n", why)
	}
	in, err := h.Read(command.Context(), f.selector, details)
	if err != nil {
		return nil, err
	}
	missing := slices.Clone(names)
	t := slices.DeleteFunc(overview.New(in), func(r overview.Row) bool {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == r.Cluster })
		return len(names) > 0 && !slices.Contains(names, r.Cluster)
	})
	switch {
	case len(missing) > 0 && len(in.Clusters) > 0:
		return nil, fmt.Errorf("%w: the fleet has no cluster %s", errNoCluster, strings.Join(missing, ", "))
	case len(t) == 0 && len(in.Clusters) > 0:
		return nil, fmt.Errorf("%w: of %d clusters none has the add-on", errNoCluster, len(in.Clusters))
	}
	return t, f.found(len(t), missing)
}

func fleetAnswer(t overview.Table, now time.Time) answer {
	out := table("CLUSTER", "TOPOLOGY", "STATE", "MODULE", "REASON", "SINCE", "VERSION", "GROUP", "INFRASTRUCTURE+", "WORKERS+", "CONFIGURATION+", "MESSAGE+")
	var names []string
	for _, r := range t {
		since, workers := "", ""
		if r.Since != nil {
			since = duration.HumanDuration(now.Sub(*r.Since))
		}
		if r.Workers != nil {
			workers = fmt.Sprint(*r.Workers)
		}
		names = append(names, "managedcluster/"+r.Cluster)
		cells := []any{r.Cluster, r.ControlPlane, r.State.String(), r.Module, r.Reason, since, r.Version, r.Group, r.Infrastructure, workers, r.Configuration, r.Message}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		row(out, cells...)
	}
	return answer{kind: "FleetStatus", value: map[string]any{"worst": t.Worst(), "clusters": t}, names: names, table: out}
}
