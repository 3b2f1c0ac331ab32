// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/report"
)

func TestDeploymentRollout(t *testing.T) {
	zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
	for name, test := range map[string]struct {
		strategy appsv1.DeploymentStrategy
		replicas int32
		got      string
		held     bool
	}{
		"no surge":                              {rolling(one, zero), 1, "RollingUpdate, maxUnavailable 1, maxSurge 0", true},
		"a surge":                               {rolling(zero, one), 1, "RollingUpdate, maxUnavailable 0, maxSurge 1", false},
		"both":                                  {rolling(one, one), 1, "RollingUpdate, maxUnavailable 1, maxSurge 1", true},
		"the API's default":                     {rolling(quarter, quarter), 1, "RollingUpdate, maxUnavailable 0, maxSurge 1", false},
		"two replicas, one may be unavailable":  {rolling(one, zero), 2, "RollingUpdate, maxUnavailable 1, maxSurge 0", false},
		"two replicas, both may be unavailable": {rolling(intstr.FromString("100%"), zero), 2, "RollingUpdate, maxUnavailable 2, maxSurge 0", true},
		"today's router":                        {rolling(quarter, zero), 1, "RollingUpdate, maxUnavailable 1, maxSurge 0", true},
		"an empty strategy":                     {appsv1.DeploymentStrategy{}, 1, "RollingUpdate, maxUnavailable 0, maxSurge 1", false},
		"recreated":                             {appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 1, "Recreate", true},
	} {
		got, held := deploymentRollout(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &test.replicas, Strategy: test.strategy}})
		if got != test.got || held != test.held {
			t.Errorf("%s: %q %t, want %q %t", name, got, held, test.got, test.held)
		}
	}
}

func TestDaemonSetRollout(t *testing.T) {
	surging := func(value intstr.IntOrString) appsv1.DaemonSetUpdateStrategy {
		return appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &value}}
	}
	for name, test := range map[string]struct {
		strategy appsv1.DaemonSetUpdateStrategy
		got      string
		held     bool
	}{
		"the API's default": {appsv1.DaemonSetUpdateStrategy{}, "RollingUpdate, maxSurge 0", true},
		"no surge":          {surging(intstr.FromInt32(0)), "RollingUpdate, maxSurge 0", true},
		"none in percent":   {surging(intstr.FromString("0%")), "RollingUpdate, maxSurge 0%", true},
		"a surge":           {surging(intstr.FromInt32(1)), "RollingUpdate, maxSurge 1", false},
		"a few percent":     {surging(intstr.FromString("10%")), "RollingUpdate, maxSurge 10%", false},
		"on deletion":       {appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}, "OnDelete", true},
	} {
		got, held := daemonSetRollout(&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{UpdateStrategy: test.strategy}})
		if got != test.got || held != test.held {
			t.Errorf("%s: %q %t, want %q %t", name, got, held, test.got, test.held)
		}
	}
}

// TestHostPortsCheck tests which workloads the check includes, and its evidence.
func TestHostPortsCheck(t *testing.T) {
	hostPort := func(pod *corev1.PodSpec) {
		pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}
	hostNetwork := func(pod *corev1.PodSpec) {
		pod.HostNetwork, pod.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}
	}
	noPorts := func(pod *corev1.PodSpec) { pod.HostNetwork = true }
	ports := func(pod *corev1.PodSpec) { pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}} }
	deployment := func(role string, n int32, change func(*corev1.PodSpec)) func(*State) {
		return func(s *State) {
			d := newDeployment("openshift-a", "a", n)
			d.Spec.Template.Spec.NodeSelector = map[string]string{role: ""}
			change(&d.Spec.Template.Spec)
			s.Deployments = append(s.Deployments, d)
		}
	}
	daemonSet := func(change func(*corev1.PodSpec)) func(*State) {
		return func(s *State) {
			like := newDeployment("openshift-b", "b", 1)
			d := appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Template: like.Spec.Template, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: ptr.To(intstr.FromInt32(1))},
			}}}
			change(&d.Spec.Template.Spec)
			s.DaemonSets = append(s.DaemonSets, d)
		}
	}
	highlyAvailable := func(s *State) { s.Infrastructure.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode }
	const none = "nothing that is pinned to the control plane, and no DaemonSet, has host ports"
	stuck := func(ports string) report.Evidence {
		return found("Deployment openshift-a/a", "spec.strategy, with host ports "+ports, "Recreate, or maxUnavailable at least 1", "RollingUpdate, maxUnavailable 0, maxSurge 1", false)
	}
	surging := found("DaemonSet openshift-b/b", "spec.updateStrategy, with host ports 8080-TCP", "OnDelete, or maxSurge 0", "RollingUpdate, maxSurge 1", false)
	for name, test := range map[string]struct {
		changes  []func(*State)
		why      string
		evidence []report.Evidence
	}{
		"nothing":                           {why: none},
		"a host port":                       {[]func(*State){deployment(masterRole, 1, hostPort)}, "", []report.Evidence{stuck("8080-TCP")}},
		"the role's other name":             {[]func(*State){deployment(controlPlaneRole, 1, hostPort)}, "", []report.Evidence{stuck("8080-TCP")}},
		"ports on the node's network":       {[]func(*State){deployment(masterRole, 1, hostNetwork)}, "", []report.Evidence{stuck("53-UDP, 80-TCP")}},
		"the node's network and no ports":   {[]func(*State){deployment(masterRole, 1, noPorts)}, none, nil},
		"ports of its own":                  {[]func(*State){deployment(masterRole, 1, ports)}, none, nil},
		"not pinned":                        {[]func(*State){deployment(workerRole, 1, hostPort)}, none, nil},
		"no replicas":                       {[]func(*State){deployment(masterRole, 0, hostPort)}, none, nil},
		"a DaemonSet":                       {[]func(*State){daemonSet(hostPort)}, "", []report.Evidence{surging}},
		"a DaemonSet with ports of its own": {[]func(*State){daemonSet(ports)}, none, nil},
		"both":                              {[]func(*State){deployment(masterRole, 1, hostPort), daemonSet(hostPort)}, "", []report.Evidence{stuck("8080-TCP"), surging}},
		"other control-plane nodes":         {[]func(*State){highlyAvailable, deployment(masterRole, 1, hostPort), daemonSet(hostPort)}, "the control plane is not SingleReplica", nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := &State{Infrastructure: &configv1.Infrastructure{
				ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.InfrastructureStatus{ControlPlaneTopology: configv1.SingleReplicaTopologyMode},
			}}
			for _, change := range test.changes {
				change(state)
			}
			check := hostPortRollouts()
			if why := check.NotApplicable(state); why != test.why {
				t.Fatalf("applies: %q, want %q", why, test.why)
			}
			if test.why != "" {
				return
			}
			evidence, err := check.Run(&Input{State: state})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.evidence, evidence); diff != "" {
				t.Error(diff)
			}
		})
	}
}
