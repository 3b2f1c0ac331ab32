package extension

import (
	"fmt"
	"slices"
	"time"

	"github.com/solonode/sno/conformance/checks"
)

// Limits for one test of a suite. origin ends a test that takes longer. The first test that needs the cluster at rest waits until it is.
const (
	staticTimeout     = 15 * time.Minute // an edge cluster after an update: the router's connections drain before it is at rest
	scheduledTimeout  = 30 * time.Minute // and every copied Deployment pulls an image, rolls, and is evicted
	disruptiveTimeout = 90 * time.Minute // and every node restarts; firmware takes its time
)

// choice is a suite and the same question to a check that its qualifier asks.
type choice struct {
	suite
	holds func(checks.Check) bool
}

// choices are all suites: one for each tier, all together, and one for each module.
func (p Program) choices() []choice {
	stability := map[checks.Tier]string{checks.Static: "Stable", checks.Scheduled: "Stable", checks.Disruptive: "Disruptive"}
	timeouts := map[checks.Tier]time.Duration{
		checks.Static: staticTimeout, checks.Scheduled: scheduledTimeout, checks.Disruptive: disruptiveTimeout,
	}
	does := map[checks.Tier]string{
		checks.Static:     "reads the cluster",
		checks.Scheduled:  "lets the scheduler work on copies in namespaces of their own",
		checks.Disruptive: "disturbs the cluster: evictions, restarts of nodes, changes of the topology",
	}
	var all []choice
	for _, tier := range checks.Tiers() {
		all = append(all, choice{
			suite: suite{
				Name: "sno/" + string(tier), Description: "The " + string(tier) + " tier: " + does[tier], Qualifiers: labelled("tier:" + string(tier)),
				ClusterStability: stability[tier], TestTimeout: timeouts[tier],
			},
			holds: func(check checks.Check) bool { return check.Tier == tier },
		})
	}
	all = append(all, choice{
		suite: suite{
			Name: "sno/all", Description: "Every check", Qualifiers: []string{fmt.Sprintf("source == %q", self)},
			ClusterStability: "Disruptive", TestTimeout: disruptiveTimeout,
		},
		holds: func(checks.Check) bool { return true },
	})
	for _, module := range p.modules() {
		all = append(all, choice{
			suite: suite{
				Name: "sno/" + module, Description: "Every check of " + module, Qualifiers: labelled("module:" + module),
				ClusterStability: "Disruptive", TestTimeout: disruptiveTimeout,
			},
			holds: func(check checks.Check) bool { return check.Module == module },
		})
	}
	return all
}

// labelled is a qualifier for tests of this extension that have a label. It names the source, so that labels of other extensions do not count.
func labelled(label string) []string {
	return []string{fmt.Sprintf("(source == %q) && (labels.exists(l, l==%q))", self, label)}
}

// modules are those of the catalogue, in its order.
func (p Program) modules() []string {
	var modules []string
	for _, check := range p.Catalogue {
		if !slices.Contains(modules, check.Module) {
			modules = append(modules, check.Module)
		}
	}
	return modules
}

// inSuite returns the checks of a suite.
func (p Program) inSuite(name string) ([]checks.Check, error) {
	choices := p.choices()
	i := slices.IndexFunc(choices, func(c choice) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range choices {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("no suite is called %q; there are %v", name, names)
	}
	checks := slices.DeleteFunc(slices.Clone(p.Catalogue), func(check checks.Check) bool { return !choices[i].holds(check) })
	if len(checks) == 0 {
		return nil, fmt.Errorf("suite %s has no checks", name)
	}
	return checks, nil
}
