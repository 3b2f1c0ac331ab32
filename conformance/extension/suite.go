// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"slices"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
)

// Limits for one test of a suite, after which origin stops it. The first test also waits until the cluster is stable.
const (
	staticTimeout     = 15 * time.Minute // an edge cluster after an update: the router's connections drain before it is stable
	scheduledTimeout  = 30 * time.Minute // and every copied Deployment pulls an image, rolls out, and is evicted
	disruptiveTimeout = 90 * time.Minute // and every node restarts, with slow firmware
)

type choice struct {
	suite
	holds func(catalogue.Check) bool
}

func (p Program) choices() []choice {
	stability := map[catalogue.Tier]string{catalogue.Static: "Stable", catalogue.Scheduled: "Stable", catalogue.Disruptive: "Disruptive"}
	timeouts := map[catalogue.Tier]time.Duration{
		catalogue.Static: staticTimeout, catalogue.Scheduled: scheduledTimeout, catalogue.Disruptive: disruptiveTimeout,
	}
	does := map[catalogue.Tier]string{
		catalogue.Static:     "reads the cluster",
		catalogue.Scheduled:  "runs copies of Deployments in their own namespaces",
		catalogue.Disruptive: "disturbs the cluster: evictions, restarts of nodes, changes of the topology",
	}
	var all []choice
	for _, tier := range catalogue.Tiers() {
		all = append(all, choice{
			suite: suite{
				Name: "sno/" + string(tier), Description: "The " + string(tier) + " tier: " + does[tier], Qualifiers: labelled("tier:" + string(tier)),
				ClusterStability: stability[tier], TestTimeout: timeouts[tier],
			},
			holds: func(check catalogue.Check) bool { return check.Tier == tier },
		})
	}
	all = append(all, choice{
		suite: suite{
			Name: "sno/all", Description: "Every check", Qualifiers: []string{fmt.Sprintf("source == %q", self)},
			ClusterStability: "Disruptive", TestTimeout: disruptiveTimeout,
		},
		holds: func(catalogue.Check) bool { return true },
	})
	for _, module := range catalogue.Modules(p.Catalogue) {
		all = append(all, choice{
			suite: suite{
				Name: "sno/" + module, Description: "Every check of " + module, Qualifiers: labelled("module:" + module),
				ClusterStability: "Disruptive", TestTimeout: disruptiveTimeout,
			},
			holds: func(check catalogue.Check) bool { return check.Module == module },
		})
	}
	return all
}

// labelled returns a qualifier for a label. It contains the source, because other extensions may use the label.
func labelled(label string) []string {
	return []string{fmt.Sprintf("(source == %q) && (labels.exists(l, l==%q))", self, label)}
}

func (p Program) inSuite(name string) ([]catalogue.Check, error) {
	choices := p.choices()
	i := slices.IndexFunc(choices, func(c choice) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range choices {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("unknown suite %q, want one of %v", name, names)
	}
	checks := slices.DeleteFunc(slices.Clone(p.Catalogue), func(check catalogue.Check) bool { return !choices[i].holds(check) })
	if len(checks) == 0 {
		return nil, fmt.Errorf("suite %s has no checks", name)
	}
	return checks, nil
}
