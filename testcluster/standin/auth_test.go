// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/auth"
)

const (
	oauthServers    = "openshift-authentication"
	oauthAPIServers = "openshift-oauth-apiserver"
	// living is an endpoint that leads to the API server of the test, dead one that answers nothing.
	living, dead = "192.0.2.1", "192.0.2.2"
)

func authentication() *operatorv1.Authentication {
	return &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: operatorv1.AuthenticationSpec{
		OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed},
	}}
}

func authSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, []string{oauthServers, oauthAPIServers, "default"},
		[]client.Object{&operatorv1.Authentication{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &discoveryv1.EndpointSlice{}}, authentication())
	s.topology(single, single)
	return s
}

func (s *site) startAuth(stock bool) {
	s.Helper()
	options := auth.DefaultOptions()
	options.Stock = stock
	options.WellKnownPath, options.WellKnownServerName, options.WellKnownInterval = "/readyz", "localhost", 100*time.Millisecond
	options.Tries = wait.Backoff{Steps: 2, Duration: time.Millisecond}
	address := strings.Trim(strings.TrimPrefix(s.server.Config(s, user).Host, "https:"), "/")
	options.ConnectTo = map[string]string{living + ":6443": address, dead + ":6443": "127.0.0.1:1"}
	s.start(options)
}

func (s *site) apiServers(addresses ...string) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "by-hand", Labels: map[string]string{"kubernetes.io/service-name": "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
		Endpoints: []discoveryv1.Endpoint{},
	}
	if !s.get(slice.DeepCopy()) {
		s.create(slice)
	}
	change(s, slice, func(live *discoveryv1.EndpointSlice) {
		live.Endpoints = nil
		for _, address := range addresses {
			live.Endpoints = append(live.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
	})
}

// operands waits until both Deployments are "REPLICAS UNAVAILABLE/SURGE SELECTOR apart, budget".
func (s *site) operands(server, apiServer string) {
	s.Helper()
	for _, each := range []struct{ namespace, name, budget, want string }{
		{oauthServers, "oauth-openshift", "oauth-openshift-pdb", server}, {oauthAPIServers, "apiserver", "oauth-apiserver-pdb", apiServer},
	} {
		s.eventually(each.name, func() error {
			got, d := "", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: each.namespace, Name: each.name}}
			if s.get(d) {
				rolling := d.Spec.Strategy.RollingUpdate
				got = fmt.Sprintf("%d %s/%s %v", *d.Spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, slices.Sorted(maps.Keys(d.Spec.Template.Spec.NodeSelector)))
				if a := d.Spec.Template.Spec.Affinity; a != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 1 {
					got += " apart"
				}
			}
			if s.get(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: each.namespace, Name: each.budget}}) {
				got += ", budget"
			}
			if got != each.want {
				return fmt.Errorf("it is %q, want %q", got, each.want) //nolint:err113 // a test
			}
			return nil
		})
	}
}

func (s *site) authConditions(want map[string]string) {
	s.Helper()
	s.conditions(func() []operatorv1.OperatorCondition {
		live := authentication()
		s.get(live)
		return live.Status.Conditions
	}, want)
}

// Today's rules (U-AUTH-1, U-AUTH-2) and the module's: with many control-plane nodes a rollout needs no free node, and the
// only pod ends after its successor is there.
func TestAuthFollowsTopologyAndNodes(t *testing.T) {
	const onMaster, onWorker = " [node-role.kubernetes.io/master]", " [node-role.kubernetes.io/worker]"
	for _, test := range []struct {
		stock                        bool
		controlPlane, infrastructure configv1.TopologyMode
		nodes                        int
		server, apiServer            string
	}{
		{true, single, single, 1, "1 1/1" + onMaster + " apart", "1 1/0" + onMaster + " apart"},
		{true, many, many, 3, "3 2/3" + onMaster + " apart", "3 1/0" + onMaster + " apart, budget"},
		{true, external, many, 0, "0 1/0" + onMaster + " apart", "0 1/0" + onMaster + " apart, budget"},
		{false, single, many, 1, "1 0/1" + onMaster, "1 1/0" + onMaster + " apart"},
		{false, many, many, 3, "3 2/3" + onMaster + " apart, budget", "3 1/0" + onMaster + " apart, budget"},
		{false, external, many, 0, "2 1/2" + onWorker + " apart, budget", "2 1/0" + onWorker + " apart, budget"},
		{false, external, single, 0, "1 0/1" + onWorker, "1 1/0" + onWorker + " apart"},
	} {
		t.Run(fmt.Sprintf("stock %t, %s, %s", test.stock, test.controlPlane, test.infrastructure), func(t *testing.T) {
			s := authSite(t)
			s.topology(test.controlPlane, test.infrastructure)
			s.masters(test.nodes)
			s.startAuth(test.stock)
			s.operands(test.server, test.apiServer)
			s.rolledOut(oauthServers, "oauth-openshift")
			server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: oauthServers, Name: "oauth-openshift"}}
			s.silent(authentication(), server)
			// What another client changes is put back.
			change(s, server, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
			s.operands(test.server, test.apiServer)
			s.authConditions(map[string]string{"APIServerDeploymentAvailable": "False NoPods"})
			if test.stock || test.nodes == 0 {
				return
			}
			// A cordoned node counts, one with a taint for another purpose does not.
			change(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule})
			})
			s.silent()
			s.operands(test.server, test.apiServer)
			if test.nodes < 3 {
				return
			}
			change(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule})
			})
			s.operands("2 1/2"+onMaster+" apart, budget", "2 1/0"+onMaster+" apart, budget")
			// An unmanaged operator writes nothing.
			change(s, authentication(), func(a *operatorv1.Authentication) { a.Spec.ManagementState = operatorv1.Unmanaged })
			s.topology(single, single)
			s.silent(server)
			s.operands("2 1/2"+onMaster+" apart, budget", "2 1/0"+onMaster+" apart, budget")
		})
	}
}

// With fewer nodes than the topology has, the Deployments wait, unless the override says otherwise (U-AUTH-3).
func TestAuthWaitsForNodes(t *testing.T) {
	s := authSite(t)
	s.topology(many, many)
	s.masters(1)
	s.startAuth(false)
	const key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
	override := func(value string) {
		t.Helper()
		change(s, authentication(), func(a *operatorv1.Authentication) { a.Spec.UnsupportedConfigOverrides.Raw = []byte(value) })
	}
	override(`{"` + key + `":"perhaps"}`)
	s.authConditions(map[string]string{"ControlPlaneNodesDegraded": "True UnreadableOverride"})
	override(`{"` + key + `":false}`)
	s.authConditions(map[string]string{
		"ControlPlaneNodesProgressing": "True WaitingForNodes", "UnsupportedConfigOverridesUpgradeable": "False UnsupportedConfigOverrides",
	})
	s.operands("", "")
	override(`{"` + key + `":true}`)
	s.operands("1 1/1 [node-role.kubernetes.io/master] apart, budget", "1 1/0 [node-role.kubernetes.io/master] apart, budget")
	s.authConditions(map[string]string{"ControlPlaneNodesProgressing": "False AsExpected"})
}

// The restart of the only API server is a rollout to the module, and an outage to today's operator (U-AUTH-6); both know
// what an earlier process has reported.
func TestAuthWellKnown(t *testing.T) {
	for _, stock := range []bool{true, false} {
		t.Run(fmt.Sprintf("stock %t", stock), func(t *testing.T) {
			s := authSite(t)
			s.masters(1)
			s.apiServers(living)
			s.startAuth(stock)
			well := map[string]string{"WellKnownAvailable": "True AsExpected", "WellKnownProgressing": "False AsExpected", "WellKnownDegraded": "False AsExpected"}
			if stock {
				well = map[string]string{"WellKnownAvailable": "True AsExpected"}
			}
			s.authConditions(well)
			s.apiServers(dead)
			restart := map[string]string{"WellKnownAvailable": "True APIServerRollingOut", "WellKnownProgressing": "True APIServerRollingOut"}
			if stock {
				restart = map[string]string{"WellKnownAvailable": "False NotReady"}
			}
			s.authConditions(restart)
			s.silent()
			s.end()
			s.startAuth(stock)
			s.silent()
			s.authConditions(restart)
			s.apiServers(living)
			s.authConditions(well)
			s.topology(many, many)
			s.apiServers(dead, living)
			some := map[string]string{"WellKnownAvailable": "True AtLeastOneWellKnownAvailable"}
			if stock {
				some = map[string]string{"WellKnownAvailable": "True AtLeastOneWellKnownEndpointAvailable"}
			}
			s.authConditions(some)
		})
	}
}
