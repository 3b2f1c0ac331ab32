// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

func TestFollowsTheTopology(t *testing.T) {
	c := installed(t, sr, others(100)...)
	p := c.Start()
	c.Eventually("it waits for the cluster-version-operator", c.HasCondition(operatorObject, condition, "True", "TakingOver"))
	defer c.release.RunInBackground()()
	for _, mode := range []configv1.TopologyMode{sr, ha, sr} {
		c.SetTopology(mode, mode)
		if mode == sr {
			c.Eventually("it is shaped", c.shaped(deployments...))
			c.Eventually("it is in force", func() error {
				c.CompleteRollouts(deployments...)
				return c.HasCondition(operatorObject, condition, "True", "AsExpected")()
			})
			if !slices.Contains(c.version().Spec.Overrides, decision.Override()) {
				t.Error("downloads is shaped without an override")
			}
		} else {
			c.Eventually("the override is gone", c.overrides(others(100)...))
			c.Eventually("it is not needed", c.HasCondition(operatorObject, condition, "False", "NotNeeded"))
			c.Eventually("everything is released", c.untouched)
		}
		p.CheckNoWrites(3)
	}
	if n, err := p.Metric("sno_apply_total", `module="console"`, `result="error"`); err != nil || n > 20 {
		t.Errorf("%v failed writes, %v", n, err)
	}
	seen := c.Events(metav1.NamespaceDefault)
	for _, event := range []string{"Normal TakingOver", "Normal AsExpected", "Normal NotNeeded"} {
		if seen[event] == 0 {
			t.Errorf("no event %s: %v", event, seen)
		}
	}
	p.Stop()
}

// Plain Kubernetes serves neither ClusterVersion nor Console.
func TestKindsServedLater(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server of its own; make proof runs it")
	}
	c := &cluster{Cluster: suite.ClusterOn(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}}))}
	c.SetTopology(sr, sr)
	c.Apply("installer", unshaped(consoleObject), unshaped(downloadsObject))
	p := c.Start()
	p.WaitForLog("Working without kinds that the cluster does not serve")
	c.Eventually("they are shaped", c.shaped(deployments...))
	c.CompleteRollouts(deployments...)
	c.Eventually("it is in force", p.HasMetric(1, "sno_patch_in_force"))
	p.CheckNoWrites(2)

	c.InstallCRDs(crds.Consoles, crds.ClusterVersions)
	c.Apply("installer", operatorOf(operatorv1.Unmanaged))
	p.WaitForEnd("the cluster serves kinds that it did not serve before")
	p = c.Start()
	c.Eventually("managementState is followed", c.HasCondition(operatorObject, condition, "False", "OptedOut"))
	c.Check(func() error { return c.Untouched(consoleObject, downloadsObject) })
	c.Patch("oc", operatorObject, managementState, operatorv1.Managed)
	c.Eventually("the console is shaped", c.shaped(consoleObject))

	c.installVersion()
	c.Delete(downloadsObject)
	defer c.VersionOperator(manifest(console.DownloadsName)).RunInBackground()()
	c.Eventually("the override is set", c.overrides(decision.Override()))
	c.Eventually("downloads is taken over", c.shaped(downloadsObject))
	p.Stop()
}

// Without a Console there are no conditions, and without a ClusterVersion downloads is not taken over.
func TestObjectsCreatedLater(t *testing.T) {
	c := newCluster(t, sr)
	c.Apply("installer", unshaped(consoleObject))
	c.Create(overrides.ClusterVersionOperator, manifest(console.DownloadsName))
	p := c.Start()
	c.Eventually("the console is shaped", c.shaped(consoleObject))
	c.Eventually("it waits for the ClusterVersion", p.HasMetric(1, "sno_blocked", `reason="WaitingForObject"`))
	p.CheckNoWrites(2)
	c.Check(c.replicas(downloadsObject, 2))

	c.Apply("installer", operatorOf(operatorv1.Managed))
	c.Eventually("it reports that", c.HasCondition(operatorObject, condition, "False", "WaitingForObject"))
	c.installVersion()
	defer c.release.RunInBackground()()
	c.Eventually("downloads is taken over", c.shaped(downloadsObject))
	p.Stop()
}

func TestFlags(t *testing.T) { suite.TestFlags(t, nil) }

func TestManifests(t *testing.T) {
	suite.TestManifests(t, [][6]string{
		{console.Namespace, "apps", "deployments", "", "downloads", "patch"},
		{"", "config.openshift.io", "clusterversions", "", "version", "patch"},
		{"", "operator.openshift.io", "consoles", "status", "cluster", "patch"},
	}, [][6]string{
		{console.Namespace, "apps", "deployments", "", "downloads", "update"},
		{console.Namespace, "apps", "deployments", "", "downloads", "create"},
		{console.Namespace, "apps", "deployments", "", "downloads", "delete"},
		{console.Namespace, "apps", "deployments", "", "other", "patch"},
		{console.Namespace, "policy", "poddisruptionbudgets", "", "console", "patch"},
		{console.Namespace, "", "pods", "", "", "list"},
		{console.Namespace, "", "secrets", "", "", "get"},
		{"openshift-authentication", "apps", "deployments", "", "downloads", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "update"},
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "operator.openshift.io", "consoles", "", "cluster", "patch"},
		{"", "", "nodes", "", "", "list"},
	})
}

// The account may change nothing but what the module patches.
func TestPolicies(t *testing.T) {
	const entry = `{"kind":"Deployment","group":"apps","namespace":"%s","name":"%s","unmanaged":true}`
	other := overrides.Deployment("openshift-dns-operator", "dns-operator")
	c := installed(t, sr, other)
	kept := fmt.Sprintf(entry, other.Namespace, other.Name)
	c.TestPolicies(
		modules.Change{Object: consoleObject, Patch: `{"spec":{"replicas":3}}`, Permissible: true},
		modules.Change{Object: consoleObject, Patch: `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`},
		modules.Change{Object: downloadsObject, Patch: `{"spec":{"paused":true}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"overrides":[` + fmt.Sprintf(entry, console.Namespace, "downloads") + `,` + kept + `]}}`, Permissible: true},
		modules.Change{Object: versionObject, Patch: `{"spec":{"overrides":[` + fmt.Sprintf(entry, console.Namespace, "console") + `,` + kept + `]}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"overrides":null}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"channel":"attacker"}}`},
		modules.Change{Object: operatorObject, Status: true, Patch: `{"status":{"conditions":[{"type":"Degraded","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
	)
}
