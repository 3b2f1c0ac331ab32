// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/runner"
)

func (p Program) catalogue() *cobra.Command {
	return &cobra.Command{
		Use: "catalogue", GroupID: groupPeople, Short: "Print every check", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			table := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tMODULE\tLEVEL\tTIER\tTITLE")
			for _, check := range p.Catalogue {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", check.ID, check.Module, check.Level, check.Tier, check.Title)
			}
			return table.Flush()
		},
	}
}

func (p Program) explain() *cobra.Command {
	return &cobra.Command{
		Use: "explain ID", GroupID: groupPeople, Short: "Print the details of a check", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			chosen, err := runner.Select(p.Catalogue, runner.Selection{Tiers: catalogue.Tiers(), IDs: args})
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Out, explained(chosen[0]))
			return err
		},
	}
}

func explained(check catalogue.Check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n", check.ID, check.Title)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "module\t%s\nlevel\t%s\ntier\t%s\nrequirement\t%s\n", check.Module, check.Level, check.Tier, check.Requirement)
	fmt.Fprintf(table, "topologies\t%s\nneeds\t%s\n", orAll(check.Topologies), cmp.Or(strings.Join(check.Needs, "; "), "nothing"))
	_ = table.Flush() // a strings.Builder returns no errors
	b.WriteString("\nControls\n")
	for _, control := range check.Controls {
		fmt.Fprintf(&b, "  must %s, %s: %s\n", map[bool]string{true: "pass", false: "fail"}[control.MustPass], check.KindOf(control), control.Name)
	}
	return b.String()
}

// orAll returns a list of topologies.
func orAll(topologies []string) string { return cmp.Or(strings.Join(topologies, ", "), "all") }
