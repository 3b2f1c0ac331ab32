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
