// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/patch/patchtest"
)

var (
	single = operands{&outcome{1, "0", "1", "", "master", "none"}, &outcome{1, "1", "0", "always", "master", "none"}}
	three  = operands{
		&outcome{3, "2", "3", "revision", "master", "oauth-openshift-pdb 1"}, &outcome{3, "1", "0", "always", "master", "oauth-apiserver-pdb 1"},
	}
	onWorkers = operands{
		&outcome{2, "1", "2", "revision", "worker", "oauth-openshift-pdb 1"}, &outcome{2, "1", "0", "always", "worker", "oauth-apiserver-pdb 1"},
	}
	onOneWorker = operands{&outcome{1, "0", "1", "", "worker", "none"}, &outcome{1, "1", "0", "always", "worker", "none"}}
)

func TestDeploymentsHaveTheShape(t *testing.T) {
	for _, test := range []struct {
		name                         string
		controlPlane, infrastructure configv1.TopologyMode
		masters                      int
		want                         operands
	}{
		{"single", sr, sr, 1, single},
		{"single with workers", sr, ha, 1, single},
		{"highly available", ha, ha, 3, three},
		{"external", external, ha, 0, onWorkers},
		{"external with one worker", external, sr, 0, onOneWorker},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.masters == 0 {
				t.Skip("an external control plane is for make proof")
			}
			s := newSite(t, infrastructure(), authentication(""))
			s.topology(test.controlPlane, test.infrastructure)
			s.masters(test.masters)
			s.apiServers(living)
			s.start()
			s.expect(test.want)
			s.expectConditions(map[string]string{"WellKnownAvailable": "True AsExpected", "ControlPlaneNodesProgressing": "False AsExpected"})
			s.silent()
			deployment := &appsv1.Deployment{}
			if !s.find(apiServerSpace, "apiserver", deployment) || deployment.ManagedFields[0].Manager != "authentication-operator" {
				t.Errorf("the managers are %v", deployment.ManagedFields)
			}
			if path := deployment.Spec.Template.Spec.Volumes[0].HostPath; path == nil || path.Path != "/var/log/oauth-apiserver" {
				t.Errorf("the audit log goes to %v", path)
			}
		})
	}
}

func TestFollowsTopologyAndNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("it flips the topology again and again; make proof runs it")
	}
	s := newSite(t, infrastructure(), authentication(""))
	s.topology(sr, sr)
	s.masters(3)
	s.apiServers(living)
	s.start()
	s.expect(single)
	s.silent()
	for range 2 {
		s.topology(ha, ha)
		s.expect(three)
		s.silent()
		s.topology(sr, sr)
		s.expect(single)
		s.silent()
	}
	s.topology(ha, ha)
	s.expect(three)

	// A cordoned node counts, one with a taint for another purpose does not.
	taint := func(name string, taints ...corev1.Taint) {
		t.Helper()
		change(s, node(name, nil), func(n *corev1.Node) { n.Spec.Taints = taints })
	}
	taint("m1", corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule})
	s.silent()
	s.expect(three)
	taint("m2", corev1.Taint{Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule})
	two := operands{ptr.To(*three.Server), ptr.To(*three.APIServer)}
	two.Server.Replicas, two.Server.Unavailable, two.Server.Surge, two.APIServer.Replicas = 2, "1", "2", 2
	s.expect(two)
	taint("m2")
	s.expect(three)

	// A deleted Infrastructure does not change the topology.
	if err := s.admin.Delete(t.Context(), infrastructure()); err != nil {
		t.Fatal(err)
	}
	s.silent()
	s.expect(three)
	s.create(infrastructure())
	s.topology(sr, sr)
	s.expect(single)
	s.silent()
}

func TestStockFollowsNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("it flips the topology again and again; make proof runs it")
	}
	s := newSite(t, infrastructure(), authentication(""))
	s.topology(sr, sr)
	s.masters(1)
	s.apiServers(living)
	s.start(func(o *Options) { o.Stock = true })
	s.expect(operands{&outcome{1, "1", "1", "always", "master", "none"}, &outcome{1, "1", "0", "always", "master", "none"}})
	s.silent()
	s.topology(ha, ha)
	s.expect(operands{&outcome{1, "1", "1", "always", "master", "none"}, &outcome{1, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}})
	s.silent()
	// The module takes over the stock operator's Deployments. The old pod blocks the new one, so it may be unavailable
	// once.
	s.stop()
	s.topology(sr, sr)
	s.start()
	s.expectGivesWay()
	s.silent()
	s.rolledOut(serverNamespace, "oauth-openshift")
	s.expect(single)
	s.silent()
}

// expectGivesWay waits for the shape of one node while a pod with anti-affinity to all others runs.
func (s *site) expectGivesWay() {
	s.Helper()
	givesWay := operands{ptr.To(*single.Server), single.APIServer}
	givesWay.Server.Unavailable = "1"
	s.expect(givesWay)
}

func (s *site) rolledOut(namespace, name string) {
	s.Helper()
	s.eventually("rolling out "+name, func() string {
		live := &appsv1.Deployment{}
		if !s.find(namespace, name, live) {
			return "no Deployment"
		}
		live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		if err := s.admin.Status().Update(s.Context(), live); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestOverride(t *testing.T) {
	const key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
	s := newSite(t, infrastructure(), authentication(`{"`+key+`":"perhaps"}`))
	s.topology(ha, ha)
	s.masters(1)
	s.apiServers(living)
	s.start()
	s.expectConditions(map[string]string{
		"ControlPlaneNodesDegraded": "True UnreadableOverride", "UnsupportedConfigOverridesUpgradeable": "False UnreadableOverride",
	})
	s.silent()
	s.expect(operands{})

	s.override(`{"` + key + `":false}`)
	s.expectConditions(map[string]string{
		"ControlPlaneNodesProgressing": "True WaitingForNodes", "ControlPlaneNodesDegraded": "False AsExpected",
		"UnsupportedConfigOverridesUpgradeable": "False UnsupportedConfigOverrides",
	})
	s.silent()
	s.expect(operands{})

	s.override(`{"` + key + `":"true"}`)
	one := operands{ptr.To(*three.Server), ptr.To(*three.APIServer)}
	one.Server.Replicas, one.Server.Unavailable, one.Server.Surge, one.APIServer.Replicas = 1, "1", "1", 1
	s.expect(one)
	s.expectConditions(map[string]string{
		"ControlPlaneNodesProgressing": "False AsExpected", "UnsupportedConfigOverridesUpgradeable": "False UnsupportedConfigOverrides",
	})
	s.silent()

	// Existing Deployments remain with an unreadable override.
	s.override(`{"` + key + `":"perhaps"}`)
	s.expectConditions(map[string]string{"ControlPlaneNodesDegraded": "True UnreadableOverride"})
	s.topology(sr, sr)
	s.expectGivesWay()
	s.rolledOut(serverNamespace, "oauth-openshift")
	s.expect(single)
	s.override(`{}`)
	s.expectConditions(map[string]string{"ControlPlaneNodesDegraded": "False AsExpected", "UnsupportedConfigOverridesUpgradeable": "True AsExpected"})
	s.silent()
}

func TestWellKnown(t *testing.T) {
	s := newSite(t, infrastructure(), authentication(""))
	s.topology(sr, sr)
	s.masters(1)
	s.start()
	// There was no success yet, so there is no grace period of Available.
	s.expectConditions(map[string]string{"WellKnownAvailable": "False APIServerRollingOut", "WellKnownProgressing": "True APIServerRollingOut"})
	s.apiServers(living)
	well := map[string]string{"WellKnownAvailable": "True AsExpected", "WellKnownProgressing": "False AsExpected", "WellKnownDegraded": "False AsExpected"}
	s.expectConditions(well)
	s.silent()

	rolling := map[string]string{"WellKnownAvailable": "True APIServerRollingOut", "WellKnownProgressing": "True APIServerRollingOut", "WellKnownDegraded": "False AsExpected"}
	s.apiServers(dead)
	s.expectConditions(rolling)
	s.silent()
	// Another process reads from the conditions that there was a success before.
	began := s.condition("WellKnownProgressing").LastTransitionTime
	s.stop()
	s.start()
	s.silent()
	s.expectConditions(rolling)
	if again := s.condition("WellKnownProgressing").LastTransitionTime; !again.Equal(&began) {
		t.Errorf("the rollout began at %s, after a restart of the operator at %s", began, again)
	}
	s.apiServers() // its endpoint is removed
	s.silent()
	s.expectConditions(rolling)

	s.apiServers(living, dead)
	s.topology(ha, ha)
	s.expectConditions(map[string]string{"WellKnownAvailable": "True AtLeastOneWellKnownAvailable", "WellKnownProgressing": "False AsExpected", "WellKnownDegraded": "False AsExpected"})
	s.apiServers(dead)
	s.expectConditions(map[string]string{"WellKnownAvailable": "False WellKnownNotReady", "WellKnownProgressing": "False AsExpected", "WellKnownDegraded": "True WellKnownNotReady"})
	s.apiServers(living)
	s.expectConditions(well)
	s.silent()
}

func (s *site) condition(kind string) operatorv1.OperatorCondition {
	s.Helper()
	live := authentication("")
	if !s.find("", "cluster", live) {
		s.Fatal("no Authentication")
	}
	i := slices.IndexFunc(live.Status.Conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Fatalf("no condition %s", kind)
	}
	return live.Status.Conditions[i]
}

func TestDeploymentsArePutBackAndReported(t *testing.T) {
	s := newSite(t, infrastructure(), authentication(""))
	s.topology(sr, sr)
	s.masters(1)
	s.apiServers(living)
	s.start()
	s.expect(single)
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: serverNamespace, Name: "oauth-openshift"}}
	change(s, server, func(d *appsv1.Deployment) {
		d.Spec.Replicas, d.Spec.Template.Spec.Tolerations = ptr.To[int32](5), nil
	})
	s.expect(single)
	if err := s.admin.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	s.expect(single)
	s.silent()

	s.expectConditions(map[string]string{"OAuthServerDeploymentAvailable": "False NoPods", "APIServerDeploymentAvailable": "False NoPods"})
	s.rolledOut(serverNamespace, "oauth-openshift")
	s.expectConditions(map[string]string{
		"OAuthServerDeploymentAvailable": "True AsExpected", "OAuthServerDeploymentProgressing": "False AsExpected", "OAuthServerDeploymentDegraded": "False AsExpected",
		"APIServerDeploymentAvailable": "False NoPods",
	})

	// Conditions of others stay, and an unmanaged operator writes nothing.
	change(s, authentication(""), func(a *operatorv1.Authentication) { a.Spec.ManagementState = operatorv1.Unmanaged })
	modes := []configv1.TopologyMode{ha, sr}
	s.writesNothing(func() {
		s.topology(modes[0], modes[0])
		slices.Reverse(modes)
	})
	s.expect(single)
}

// The operator waits for its prerequisites.
func TestWaits(t *testing.T) {
	t.Run("for objects", func(t *testing.T) {
		s := newSite(t)
		s.masters(1)
		s.start()
		s.silent()
		s.create(authentication(""))
		s.silent()
		s.create(infrastructure())
		s.topology(sr, sr)
		s.expect(single)
	})
	t.Run("for CustomResourceDefinitions and namespaces", func(t *testing.T) {
		server := patchtest.StartAPIServer(t, patchtest.Options{})
		s := &site{T: t, server: server, admin: server.Admin(t)}
		s.masters(1)
		start(s, server)
		s.silent()
		folder, err := patchtest.APIModuleDir(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{patchtest.Infrastructures, patchtest.Authentications} {
			path, err := patchtest.CRDManifest(folder, name)
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			crd := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(content, &crd.Object); err != nil {
				t.Fatal(err)
			}
			s.create(crd)
		}
		for _, object := range []client.Object{infrastructure(), authentication("")} {
			s.eventually("creating "+object.GetName(), func() string {
				if err := s.admin.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		s.topology(sr, sr)
		s.expectConditions(map[string]string{"OAuthServerDeploymentProgressing": "True RollingOut"})
		for _, name := range []string{serverNamespace, apiServerSpace} {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		s.expect(single)
	})
}

// Objects of others are not written.
func TestWritesOnlyItsOwn(t *testing.T) {
	for _, write := range shared.Server(t).Writes(t, user) {
		path, _, _ := strings.Cut(write.URI, "?")
		if !slices.ContainsFunc([]string{"/deployments", "/poddisruptionbudgets", "/authentications/cluster/status"}, func(part string) bool { return strings.Contains(path, part) }) {
			t.Errorf("unexpected: %s", write)
		}
	}
}
