// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

// onNode returns a router on the host network. All its containers declare ports, and its probes use none.
func onNode(change ...func(*corev1.PodSpec)) *appsv1.Deployment {
	return manifest(func(d *appsv1.Deployment) {
		pod := &d.Spec.Template.Spec
		pod.HostNetwork = true
		always := corev1.ContainerRestartPolicyAlways
		pod.InitContainers = []corev1.Container{{Name: "haproxy", RestartPolicy: &always, Ports: []corev1.ContainerPort{{ContainerPort: 8404}}}}
		pod.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {Name: "https", ContainerPort: 443, HostPort: 443}}
		exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready"}}}
		pod.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: exec}
		pod.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: exec.Exec}}
		pod.Containers = append(pod.Containers, corev1.Container{Name: "logs", Ports: []corev1.ContainerPort{{ContainerPort: 9000}}})
		for _, f := range change {
			f(pod)
		}
	})
}

// R-SNO-2: only a single router with host ports on a SingleReplica pool shares its ports. Every other one is shaped as
// without the option.
func TestSharedHostPorts(t *testing.T) {
	sharing := 0
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range topologytest.AllModes {
			for _, where := range []string{"workers", "pinned"} {
				for n := unset; n <= 3; n++ {
					for _, publishes := range []operatorv1.EndpointPublishingStrategyType{
						operatorv1.HostNetworkStrategyType, operatorv1.LoadBalancerServiceStrategyType,
						operatorv1.NodePortServiceStrategyType, operatorv1.PrivateStrategyType,
					} {
						name := fmt.Sprintf("control plane %q, infrastructure %q, %s, replicas %d, %s", controlPlane, infrastructure, where, n, publishes)
						changes := []func(*operatorv1.IngressController){publishing(publishes)}
						if n != unset {
							changes = append(changes, fixture.Replicas(int32(n)))
						}
						governing := infrastructure
						if where == "pinned" {
							changes = append(changes, fixture.Placed(fixture.Pinned(t)))
							if controlPlane != topologytest.External {
								governing = controlPlane
							}
						}
						host := newHost(t, fixture.ClusterOf(controlPlane, infrastructure), "", liveIC(changes...))
						want, got := shaped(t, onNode(), host), shaped(t, onNode(), host.WithSharedHostPorts())
						if publishes == operatorv1.HostNetworkStrategyType && governing == topologytest.SR && n <= 1 {
							sharing++
							quarter := intstr.FromString("25%") // of one router: 0 and 1
							want.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &quarter, MaxSurge: &quarter}
							pod := &want.Spec.Template.Spec
							pod.InitContainers[0].Ports, pod.Containers[0].Ports, pod.Containers[1].Ports = nil, nil, nil
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s (-want +got):\n%s", name, diff)
						}
						if diff := cmp.Diff(got, shaped(t, got, host.WithSharedHostPorts())); diff != "" {
							t.Errorf("%s, shaped again (-first +second):\n%s", name, diff)
						}
					}
				}
			}
		}
	}
	// Seven modes of the other pool for each of the two pools, and the pinned router of an External control plane, which
	// runs on workers; replicas unset, 0 and 1.
	if want := (7 + 7 + 1) * 3; sharing != want {
		t.Errorf("%d routers share their ports, want %d", sharing, want)
	}
}

// A probe or a hook that the kubelet sends to a port of the node may reach the other pod.
func TestSharedHostPortsErrors(t *testing.T) {
	httpGet := &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(1936), Host: "localhost"}
	tcpSocket := &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}
	probe := func(handler corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: handler} }
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string // empty: no error
	}{
		"exec":            {func(*corev1.PodSpec) {}, ""},
		"no host network": {func(pod *corev1.PodSpec) { pod.HostNetwork = false }, "hostNetwork is false"},
		"readiness over HTTP": {func(pod *corev1.PodSpec) {
			pod.Containers[0].ReadinessProbe = probe(corev1.ProbeHandler{HTTPGet: httpGet})
		}, "readinessProbe of container router"},
		"liveness over TCP": {func(pod *corev1.PodSpec) {
			pod.Containers[1].LivenessProbe = probe(corev1.ProbeHandler{TCPSocket: tcpSocket})
		}, "livenessProbe of container logs"},
		"startup of a sidecar over gRPC": {func(pod *corev1.PodSpec) {
			pod.InitContainers[0].StartupProbe = probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1936}})
		}, "startupProbe of container haproxy"},
		"a hook at the end over HTTP": {func(pod *corev1.PodSpec) {
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: httpGet}}
		}, "preStop hook of container router"},
		"a hook at the start over TCP": {func(pod *corev1.PodSpec) {
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{TCPSocket: tcpSocket}}
		}, "postStart hook of container router"},
	} {
		host := hostOf(t, topologytest.SR, topologytest.SR)
		before := onNode(test.change)
		router, err := ingress.ShapeRouter(before, host.WithSharedHostPorts())
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.Is(err, ingress.ErrSharedHostPorts) || router != nil ||
			!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "openshift-ingress/router-default")):
			t.Errorf("%s: %v, %v", name, router, err)
		}
		if diff := cmp.Diff(onNode(test.change), before); diff != "" {
			t.Errorf("%s: the Deployment was changed (-before +after):\n%s", name, diff)
		}
		if _, err := ingress.ShapeRouter(before, host); err != nil {
			t.Errorf("%s, without the option: %v", name, err)
		}
		if _, err := ingress.ShapeRouter(before, hostOf(t, topologytest.HA, topologytest.HA).WithSharedHostPorts()); err != nil {
			t.Errorf("%s, where the option has no effect: %v", name, err)
		}
	}
	if _, err := ingress.ShapeRouter(onNode(), ingress.Host{}.WithSharedHostPorts()); !errors.Is(err, ingress.ErrHost) {
		t.Errorf("zero Host: %v", err)
	}
}
