// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solonode/sno/conformance/catalogue"
)

func (p Program) list() *cobra.Command {
	var output, suiteName, topology string
	tests := func(*cobra.Command, []string) error {
		checks := p.Catalogue
		if suiteName != "" {
			var err error
			if checks, err = p.inSuite(suiteName); err != nil {
				return err
			}
		}
		return encode(p.Out, output, specs(among(checks, topology)), func(s spec) string { return s.Name })
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
			bindEnvironment(c.Flags(), &topology)
		}
	}
	root.GroupID = groupContract
	root.AddCommand(all[1:]...)
	return root
}

// bindEnvironment adds the flags with which origin describes the cluster. Only the topology has an effect here.
func bindEnvironment(flags *pflag.FlagSet, topology *string) {
	flags.StringVar(topology, "topology", "", "controlPlaneTopology of the cluster; checks that cannot apply to it are left out")
	for _, name := range []string{"platform", "network", "network-stack", "upgrade", "architecture", "external-connectivity", "version"} {
		flags.String(name, "", "accepted without an effect")
	}
	for _, name := range []string{"optional-capability", "fact", "api-group", "feature-gate"} {
		flags.StringArray(name, nil, "accepted without an effect")
	}
}

// titles are the titles with which renamed checks were released, by id. A test requires an entry when a title changes,
// so that results of a test can be followed over releases.
var titles = map[string]string{}

func specs(checks []catalogue.Check) []spec {
	all := make([]spec, 0, len(checks))
	for _, check := range checks {
		s := spec{
			Name: check.Name(), Labels: map[string]struct{}{}, Source: self.String(), Lifecycle: lifecycle(check),
			EnvironmentSelector: environmentSelector{Include: include(check)},
		}
		for _, label := range check.Labels() {
			s.Labels[label] = struct{}{}
		}
		if title, ok := titles[check.ID]; ok {
			check.Title = title
			s.OriginalName = check.Name()
		}
		all = append(all, s)
	}
	return all
}

func lifecycle(check catalogue.Check) string {
	if check.Level == catalogue.Core {
		return blocking
	}
	return informing
}

func include(check catalogue.Check) string {
	terms := make([]string, len(check.Topologies))
	for i, topology := range check.Topologies {
		terms[i] = fmt.Sprintf("topology==%q", topology)
	}
	switch len(terms) {
	case 0, 1:
		return strings.Join(terms, "")
	default:
		return "(" + strings.Join(terms, " || ") + ")"
	}
}

// among drops checks that cannot apply with a controlPlaneTopology; none if it is empty.
func among(all []catalogue.Check, topology string) []catalogue.Check {
	return slices.DeleteFunc(slices.Clone(all), func(check catalogue.Check) bool {
		return topology != "" && len(check.Topologies) > 0 && !slices.Contains(check.Topologies, topology)
	})
}

// Limits for one test of a suite, after which origin stops it. The first test also waits until the cluster is stable.
const (
	staticTimeout     = 15 * time.Minute // an edge cluster after an update: the router's connections drain before it is stable
	scheduledTimeout  = 30 * time.Minute // and every copied Deployment pulls an image, rolls out, and is evicted
	disruptiveTimeout = 90 * time.Minute // and every node restarts, with slow firmware
)

// suites are the tiers, all checks, and the modules.
func (p Program) suites() []suite {
	all := []suite{
		newSuite("static", "The static tier: reads the cluster", "tier:static", "Stable", staticTimeout),
		newSuite("scheduled", "The scheduled tier: runs copies of Deployments in their own namespaces", "tier:scheduled", "Stable", scheduledTimeout),
		newSuite("disruptive", "The disruptive tier: disturbs the cluster: evictions, restarts of nodes, changes of the topology", "tier:disruptive", "Disruptive", disruptiveTimeout),
		newSuite("all", "Every check", "", "Disruptive", disruptiveTimeout),
	}
	for _, module := range catalogue.Modules(p.Catalogue) {
		all = append(all, newSuite(module, "Every check of "+module, "module:"+module, "Disruptive", disruptiveTimeout))
	}
	return all
}

// newSuite returns the suite of the checks with a label, all if it is empty. Its qualifier contains the source, because
// other extensions may use the label.
func newSuite(name, description, label, stability string, timeout time.Duration) suite {
	qualifier := fmt.Sprintf("source == %q", self)
	if label != "" {
		qualifier = fmt.Sprintf("(%s) && (labels.exists(l, l==%q))", qualifier, label)
	}
	return suite{Name: "sno/" + name, Description: description, Qualifiers: []string{qualifier}, ClusterStability: stability, TestTimeout: timeout, label: label}
}

func (p Program) inSuite(name string) ([]catalogue.Check, error) {
	var names []string
	for _, s := range p.suites() {
		if names = append(names, s.Name); s.Name != name {
			continue
		}
		checks := slices.DeleteFunc(slices.Clone(p.Catalogue), func(check catalogue.Check) bool {
			return s.label != "" && !slices.Contains(check.Labels(), s.label)
		})
		if len(checks) == 0 {
			return nil, fmt.Errorf("suite %s has no checks", name)
		}
		return checks, nil
	}
	return nil, fmt.Errorf("unknown suite %q, want one of %v", name, names)
}
