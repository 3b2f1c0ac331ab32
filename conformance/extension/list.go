// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (p Program) list() *cobra.Command {
	var output, suiteName string
	var env environmentFlags
	tests := func(*cobra.Command, []string) error {
		checks := p.Catalogue
		if suiteName != "" {
			var err error
			if checks, err = p.inSuite(suiteName); err != nil {
				return err
			}
		}
		return encode(p.Out, output, specs(among(checks, env.topology)), func(s spec) string { return s.Name })
	}
	suites := func(*cobra.Command, []string) error {
		return encode(p.Out, output, p.suites(), func(s suite) string { return s.Name })
	}
	components := func(*cobra.Command, []string) error {
		return encode(p.Out, output, []component{self}, component.String)
	}
	// Without a subcommand, list is list tests.
	root := contract(&cobra.Command{Use: "list", Short: "Print tests, suites or components", Args: cobra.NoArgs, RunE: tests})
	all := []*cobra.Command{
		root,
		contract(&cobra.Command{Use: "tests", Short: "Print the tests", Args: cobra.NoArgs, RunE: tests}),
		contract(&cobra.Command{Use: "suites", Short: "Print the suites", Args: cobra.NoArgs, RunE: suites}),
		contract(&cobra.Command{Use: "components", Short: "Print the components", Args: cobra.NoArgs, RunE: components}),
	}
	for i, c := range all {
		c.GroupID = ""
		c.Flags().StringVarP(&output, "output", "o", formatJSON, "json, jsonl or names")
		if i < 2 {
			c.Flags().StringVar(&suiteName, "suite", "", "only the tests of this suite")
			env.bind(c.Flags())
		}
	}
	root.GroupID = groupContract
	root.AddCommand(all[1:]...)
	return root
}

// environmentFlags are the flags with which origin describes the cluster. Only the topology has an effect on these
// tests.
type environmentFlags struct {
	topology string
}

func (e *environmentFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&e.topology, "topology", "", "controlPlaneTopology of the cluster; checks that cannot apply to it are left out")
	for _, name := range []string{"platform", "network", "network-stack", "upgrade", "architecture", "external-connectivity", "version"} {
		flags.String(name, "", "accepted without an effect")
	}
	for _, name := range []string{"optional-capability", "fact", "api-group", "feature-gate"} {
		flags.StringArray(name, nil, "accepted without an effect")
	}
}
