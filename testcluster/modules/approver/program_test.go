// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/modules"
)

const noKubelets = "--kubelets-every=0"

// The program follows the cluster with the rights of config/rbac, and with those of config/off in that mode only. At rest it writes nothing, and it never
// writes a request.
func TestFollowsTheCluster(t *testing.T) {
	c := install(t)
	c.configure(personsConfig)
	c.createRequest(certificatesv1.KubeletServingSignerName)
	c.createRequest(certificatesv1.KubeAPIServerClientKubeletSignerName)
	c.createRequest("example.com/other")
	c.createDeniedRequest(certificatesv1.KubeletServingSignerName)
	for mode, message := range map[string]string{nodeOff: "flow of the stock approver is disabled", off: "The stock approver is off"} {
		inForce := c.afterOtherControllers(c.hasCondition("PatchInForce", "True", "AsExpected", message))
		certificates := c.hasCondition("CertificatesPatchFailing", "False", "AsExpected")
		revoke := c.permit(mode)
		p := c.Start(mode, noKubelets)
		c.Eventually(mode+" is in force", inForce)
		c.Check(certificates, c.hasCondition("PatchFailing", "False", "AsExpected")) // one write has the conditions of both reporters
		c.Eventually("requests are counted", p.HasMetric(2, "sno_approver_pending_requests"))
		if age, err := p.Metric("sno_approver_oldest_pending_request_age_seconds"); err != nil || age <= 0 || age > 600 {
			t.Errorf("the oldest request is %v s old, %v", age, err)
		}
		p.CheckNoWrites(2)
		c.setTopology(ha)
		c.Eventually("it is released", c.afterOtherControllers(c.checkReleased))
		if text := c.text(); text != personsConfig {
			t.Errorf("the configuration was not restored:\n%s", text)
		}
		c.Eventually("it is not needed", c.hasCondition("PatchInForce", "False", "NotNeeded"))
		c.NoError(certificates())
		p.CheckNoWrites(1)
		c.setTopology(sr)
		c.Eventually(mode+" is in force again", inForce)
		p.Stop()
		c.setTopology(ha)
		c.reconciler(mode).Settle() // before the right is gone
		c.setTopology(sr)
		revoke()
	}
	for _, write := range c.Server.Writes(t, suite.User()) {
		if strings.Contains(write.URI, "certificatesigningrequests") {
			t.Errorf("it wrote to a request: %s", write)
		}
	}
	if seen := c.Events(metav1.NamespaceDefault); seen["Normal AsExpected"] == 0 || seen["Normal NotNeeded"] == 0 {
		t.Errorf("events: %v", seen)
	}
}

// The patch is released while there are Machines, also of a kind that was not served at the start. Watches trigger
// this, not a timer.
func TestFollowsMachines(t *testing.T) {
	groups := []string{openshift, clusterAPI}
	if testing.Short() {
		groups = groups[:1]
	}
	for _, group := range groups {
		t.Run(group, func(t *testing.T) {
			c := install(t)
			c.configure(personsConfig)
			c.unserveMachines(group)
			inForce := c.afterOtherControllers(c.hasCondition("PatchInForce", "True", "AsExpected"))
			notNeeded := c.hasCondition("PatchInForce", "False", "NotNeeded")
			p := c.Start("--requests-every=1h", noKubelets)
			c.Eventually("it is in force", inForce)
			c.serveMachines(group)
			p.WaitForEnd("the cluster serves kinds that it did not serve before")
			p = c.Start("--requests-every=1h", noKubelets)
			first, second := c.createMachine(group, "worker-1"), c.createMachine(group, "worker-2")
			c.Eventually("it is released", c.afterOtherControllers(c.checkReleased))
			c.Eventually("it is not needed", notNeeded)
			c.Delete(first)
			p.CheckNoWrites(1)
			c.NoError(notNeeded())
			c.Delete(second)
			c.Eventually("it is in force again", inForce)
			p.CheckNoWrites(1)
			c.createMachine(group, "worker-3")
			c.Eventually("it is released again", c.afterOtherControllers(c.checkReleased))
			c.Eventually("it is not needed again", notNeeded)
			c.unserveMachines(group)
			c.Eventually("it is in force without the kind", inForce)
			p.CheckNoWrites(1)
			p.Stop()
		})
	}
}

// A missing permission is reported before anything is written.
func TestForbidden(t *testing.T) {
	c := install(t)
	const reader = "reader"
	c.Permit(reader)
	c.Delete(modules.Object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, reader))
	c.Server.Grant(t, apiserver.AccountUser(modules.SystemNamespace, reader),
		rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments"}, Verbs: []string{"get", "list", "watch"}})
	p := c.StartAs(reader, "", noKubelets)
	c.Eventually("it is reported", c.hasCondition("PatchInForce", "False", "Forbidden"))
	c.NoError(c.checkReleased())
	p.Stop()
}

// Without the right of config/off the mode off turns nothing off.
func TestOffForbidden(t *testing.T) {
	c := install(t)
	l := c.reconciler(off)
	l.CheckResult(l.Reconcile(), patch.Failed, "Forbidden")
	c.NoError(c.checkReleased())
}

func TestFlags(t *testing.T) {
	t.Parallel()
	suite.TestFlags(t, map[string]modules.Invocation{
		"unknown mode": {Args: []string{"--mode=disabled"}, Code: 2, Output: []string{"--mode=disabled"}},
		"no limit":     {Args: []string{"--max-pending=0"}, Code: 2, Output: []string{"--max-pending=0s is not positive"}},
		"no warning":   {Args: []string{"--expiry-warning=-1h"}, Code: 2, Output: []string{"--expiry-warning"}},
		"no interval":  {Args: []string{"--requests-every=0"}, Code: 2, Output: []string{"--requests-every"}},
		"negative":     {Args: []string{"--kubelets-every=-1s"}, Code: 2, Output: []string{"--kubelets-every"}},
	})
}

func TestManifests(t *testing.T) {
	suite.TestManifests(t, [][6]string{
		{namespace, "apps", "deployments", "", stockName, "patch"},
		{namespace, "", "configmaps", "", configName, "delete"},
		{"", "config.openshift.io", "clusteroperators", "status", "machine-approver", "patch"},
	}, [][6]string{
		{"", "certificates.k8s.io", "certificatesigningrequests", "approval", "", "update"},
		{"", "certificates.k8s.io", "certificatesigningrequests", "", "", "create"},
		{"", "certificates.k8s.io", "certificatesigningrequests", "", "", "delete"},
		{"", "certificates.k8s.io", "signers", "", "kubernetes.io/kubelet-serving", "approve"},
		{namespace, "apps", "deployments", "", "other", "patch"},
		{namespace, "apps", "deployments", "", stockName, "delete"},
		{namespace, "", "configmaps", "", "other", "get"},
		{namespace, "", "configmaps", "", "", "create"},
		{namespace, "", "secrets", "", "", "list"},
		mayOverride,
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "config.openshift.io", "clusteroperators", "status", "other", "patch"},
		{"", "config.openshift.io", "clusteroperators", "", "machine-approver", "patch"},
		{"", "", "nodes", "", "node-0", "patch"},
		{"", "", "nodes", "proxy", "node-0", "get"},
	})
}

// The account may change nothing but what the module patches.
func TestPolicies(t *testing.T) {
	c := install(t)
	defer c.permit(off)()
	c.configure(personsConfig)
	c.TestPolicies(
		modules.Change{Object: deploymentObject, Patch: `{"spec":{"replicas":0}}`, Permissible: true},
		modules.Change{Object: deploymentObject, Patch: `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`},
		modules.Change{Object: deploymentObject, Patch: `{"spec":{"template":{"metadata":{"annotations":{"other":"x"}}}}}`},
		modules.Change{Object: configObject, Patch: `{"data":{"config.yaml":"x: y"}}`, Permissible: true},
		modules.Change{Object: configObject, Patch: `{"data":{"other":"x"}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"overrides":null}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"channel":"attacker"}}`},
		modules.Change{Object: operatorObject, Status: true, Patch: `{"status":{"versions":[{"name":"operator","version":"1"}]}}`},
	)
}
