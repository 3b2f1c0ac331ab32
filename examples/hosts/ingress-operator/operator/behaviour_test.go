// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

var (
	nodePorts   = []int32{80, 443, 1936}
	masterOnly  = map[string]string{"node-role.kubernetes.io/master": ""}
	linuxWorker = map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/worker": ""}
	bothTaints  = []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}
)

func ingressController(name string, mutate ...func(*operatorv1.IngressControllerSpec)) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}}
	for _, m := range mutate {
		m(&ic.Spec)
	}
	return ic
}

func private(spec *operatorv1.IngressControllerSpec) {
	spec.EndpointPublishingStrategy = &operatorv1.EndpointPublishingStrategy{Type: operatorv1.PrivateStrategyType}
}

func replicas(n int32) func(*operatorv1.IngressControllerSpec) {
	return func(spec *operatorv1.IngressControllerSpec) { spec.Replicas = ptr.To(n) }
}

func pinned(spec *operatorv1.IngressControllerSpec) {
	spec.NodePlacement = &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(masterOnly)},
		Tolerations: []corev1.Toleration{
			{Key: bothTaints[0], Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: bothTaints[1], Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		},
	}
}

func onBoth(t *testing.T, test func(*testing.T, host)) {
	t.Helper()
	for _, h := range hosts() {
		t.Run(h.name, func(t *testing.T) { test(t, h) })
	}
}

func TestRouterFollowsNodePlacement(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, sr, sr, nil, ingressController("default", pinned))
		onControlPlane := &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, HostPorts: nodePorts}
		onWorkers := &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts}
		s.expectRouter("default", onControlPlane)
		change(s, ingressController("default"), func(ic *operatorv1.IngressController) { ic.Spec.NodePlacement = nil })
		s.expectRouter("default", onWorkers)
		change(s, ingressController("default"), func(ic *operatorv1.IngressController) { pinned(&ic.Spec) })
		s.expectRouter("default", onControlPlane)
	})
}

// A moved router has another hash on its pods, with the vendored rules and with the stock operator's.
func TestHashFollowsNodePlacement(t *testing.T) {
	for name, flags := range map[string][]string{"vendored": nil, "stock": {"--stock"}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, hosts()[0], sr, sr, flags, ingressController("default", pinned))
			hash := func(not string) (found string) {
				s.eventually("the hash", func() string {
					deployment := &appsv1.Deployment{}
					if !s.find(routerNamespace, "router-default", deployment) {
						return "no router"
					}
					if found = deployment.Spec.Template.Labels["ingresscontroller.operator.openshift.io/hash"]; found == not {
						return fmt.Sprintf("it is %q", found)
					}
					return ""
				})
				return found
			}
			before := hash("")
			change(s, ingressController("default"), func(ic *operatorv1.IngressController) { ic.Spec.NodePlacement = nil })
			hash(before)
		})
	}
}

func TestRouterFollowsTopology(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, sr, sr, nil, ingressController("default"), ingressController("internal", private))
		for _, infrastructure := range []configv1.TopologyMode{sr, ha, sr} {
			s.topology(sr, infrastructure)
			if infrastructure == sr {
				s.expectRouter("default", &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts})
				s.expectRouter("internal", &router{Replicas: 1, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker})
				continue
			}
			s.expectRouter("default", &router{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts, Budget: "50%"})
			s.expectRouter("internal", &router{Replicas: 2, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, Apart: true, Budget: "50%"})
		}
	})
}

// With --shared-host-ports the router of a single node has no host ports and is replaced by surge. Of several routers
// each has the ports.
func TestSharedHostPortsFollowTopology(t *testing.T) {
	s := newSite(t, hosts()[0], sr, sr, []string{"--shared-host-ports", "--router-image=router"}, ingressController("default"))
	for _, infrastructure := range []configv1.TopologyMode{sr, ha, sr} {
		s.topology(sr, infrastructure)
		if infrastructure == sr {
			s.expectRouter("default", &router{Replicas: 1, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker})
			continue
		}
		s.expectRouter("default", &router{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts, Budget: "50%"})
	}
}

// The host waits for a missing Infrastructure, and a deleted one changes nothing.
func TestInfrastructureComesAndGoes(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, sr, ha, nil, ingressController("internal", private))
		before := &router{Replicas: 2, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, Apart: true, Budget: "50%"}
		s.expectRouter("internal", before)
		if err := s.admin.Delete(t.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}); err != nil {
			t.Fatal(err)
		}
		// The next IngressController uses the last topology.
		s.create(ingressController("later", private))
		s.expectRouter("later", before)
		s.expectRouter("internal", before)
		s.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
		s.topology(sr, sr)
		s.expectRouter("internal", &router{Replicas: 1, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker})
	})
}

// Reconciling unchanged objects writes nothing: a barrier, the change of another IngressController, shows that the host
// has reconciled.
func TestWritesNothingAtRest(t *testing.T) {
	rest := func(t *testing.T, h host, flags ...string) {
		t.Helper()
		s := newSite(t, h, ha, ha, flags, ingressController("default", pinned), ingressController("internal", private),
			ingressController("single", private, replicas(1)), ingressController("barrier", private, replicas(2)))
		barrier := func(n int32) {
			t.Helper()
			change(s, ingressController("barrier"), func(ic *operatorv1.IngressController) { ic.Spec.Replicas = ptr.To(n) })
			s.eventually("the barrier", func() string {
				deployment := &appsv1.Deployment{}
				if !s.find(routerNamespace, "router-barrier", deployment) || *deployment.Spec.Replicas != n {
					return "not followed"
				}
				return ""
			})
			s.settled("barrier")
		}
		for _, name := range []string{"default", "internal", "single"} {
			s.settled(name)
		}
		barrier(3)
		touchAll := func() {
			s.touch(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
			s.touch(&configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
			for _, name := range []string{"default", "internal", "single"} {
				s.touch(ingressController(name))
				s.touch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "router-" + name}})
			}
		}
		var events, writes int
		for _, write := range s.server.WritesDuring(t, s.user, func() { touchAll(); barrier(4); touchAll(); barrier(5) }) {
			switch path, _, _ := strings.Cut(write.URI, "?"); {
			case strings.HasSuffix(path, "/events"):
				events++
			case strings.Contains(path, "barrier"):
				writes++
			default:
				t.Errorf("a write request where nothing had changed: %s", write)
			}
		}
		if writes < 2 || events > writes {
			t.Errorf("%d writes and %d events for two changes", writes, events)
		}
	}
	onBoth(t, func(t *testing.T, h host) { rest(t, h) })
	t.Run("stock", func(t *testing.T) { rest(t, hosts()[0], "--stock") })
	t.Run("shared host ports", func(t *testing.T) { rest(t, hosts()[0], "--shared-host-ports", "--router-image=router") })
	t.Run("image", func(t *testing.T) { rest(t, hosts()[0], "--router-image=example.com/router:1") })
}

func TestRouterIsPutBack(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, sr, sr, nil, ingressController("default", pinned))
		want := &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, HostPorts: nodePorts}
		s.expectRouter("default", want)
		change(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "router-default"}}, func(d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To(int32(5))
			d.Spec.Template.Spec.Tolerations = nil
		})
		s.expectRouter("default", want)
		if err := s.admin.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "router-default"}}); err != nil {
			t.Fatal(err)
		}
		s.expectRouter("default", want)
	})
}

func TestRouterGoesWithItsIngressController(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, ha, ha, nil, ingressController("default"), ingressController("internal", private))
		want := &router{Replicas: 2, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, Apart: true, Budget: "50%"}
		s.expectRouter("internal", want)
		if err := s.admin.Delete(t.Context(), ingressController("internal")); err != nil {
			t.Fatal(err)
		}
		s.expectRouter("internal", nil)
		s.expectRouter("default", &router{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts, Budget: "50%"})
		s.eventually("that the name is free", func() string {
			if err := s.admin.Create(t.Context(), ingressController("internal", private)); err != nil {
				return err.Error()
			}
			return ""
		})
		s.expectRouter("internal", want)
	})
}

func TestStatus(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, sr, sr, nil, ingressController("default"))
		s.settled("default")
		foreign := operatorv1ac.IngressController("default", operatorNamespace).WithStatus(operatorv1ac.IngressControllerStatus().WithConditions(
			operatorv1ac.OperatorCondition().WithType("IngressTopologyPatchInForce").WithStatus(operatorv1.ConditionTrue).WithLastTransitionTime(metav1.Now())))
		if err := s.admin.Status().Apply(t.Context(), foreign, client.FieldOwner("another-client")); err != nil {
			t.Fatal(err)
		}
		s.eventually("making the router available", func() string {
			deployment := &appsv1.Deployment{}
			if !s.find(routerNamespace, "router-default", deployment) {
				return "no router"
			}
			deployment.Status.Replicas, deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas = 1, 1, 1
			deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
			if err := s.admin.Status().Update(t.Context(), deployment); err != nil {
				return err.Error()
			}
			return ""
		})
		type seen struct {
			Available  int32
			Publishing operatorv1.EndpointPublishingStrategyType
			Selector   string
			Conditions map[string]operatorv1.ConditionStatus
		}
		want := seen{1, operatorv1.HostNetworkStrategyType, "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=default",
			map[string]operatorv1.ConditionStatus{"Available": operatorv1.ConditionTrue, "IngressTopologyPatchInForce": operatorv1.ConditionTrue}}
		s.eventually("the status", func() string {
			status := s.ingressController("default").Status
			got := seen{Available: status.AvailableReplicas, Selector: status.Selector, Conditions: map[string]operatorv1.ConditionStatus{}}
			if status.EndpointPublishingStrategy != nil {
				got.Publishing = status.EndpointPublishingStrategy.Type
			}
			for _, c := range status.Conditions {
				if _, wanted := want.Conditions[c.Type]; wanted {
					got.Conditions[c.Type] = c.Status
				}
			}
			return cmp.Diff(want, got)
		})
	})
}

func TestCreateDefault(t *testing.T) {
	onBoth(t, func(t *testing.T, h host) {
		s := newSite(t, h, external, ha, []string{"--create-default"}, ingressController("barrier"))
		s.settled("barrier")
		s.topology(external, sr) // reconciles the default one before the barrier
		s.expectRouter("barrier", &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts})
		created := func(w patchtest.Write) bool {
			return w.Verb == "create" && strings.Contains(w.URI, "/ingresscontrollers")
		}
		if slices.ContainsFunc(s.writes(), created) {
			t.Error("an IngressController was created although the control plane is external")
		}
		s.topology(sr, sr)
		s.expectRouter("default", &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, HostPorts: nodePorts})
		ic := s.ingressController("default")
		if diff := cmp.Diff(ptr.To(int32(1)), ic.Spec.Replicas); diff != "" {
			t.Errorf("spec.replicas (-want +got):\n%s", diff)
		}
		if manager := ic.ManagedFields[0].Manager; manager != "cluster-ingress-operator" {
			t.Errorf("created by field manager %q", manager)
		}
		if err := s.admin.Delete(t.Context(), ic); err != nil {
			t.Fatal(err)
		}
		s.eventually("a new default IngressController", func() string {
			again := &operatorv1.IngressController{}
			if !s.find(operatorNamespace, "default", again) || again.UID == ic.UID {
				return "none"
			}
			return ""
		})
	})
	t.Run("stock", func(t *testing.T) {
		s := newSite(t, hosts()[0], sr, sr, []string{"--create-default", "--stock"})
		s.expectRouter("default", &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker,
			Tolerates: []string{"kubernetes.io/e2e-evict-taint-key"}, HostPorts: nodePorts})
		if diff := cmp.Diff(ptr.To(int32(1)), s.ingressController("default").Spec.Replicas); diff != "" {
			t.Errorf("spec.replicas (-want +got):\n%s", diff)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		onBoth(t, func(t *testing.T, h host) {
			s := newSite(t, h, sr, sr, nil, ingressController("barrier"))
			s.settled("barrier")
			s.topology(ha, ha) // reconciles the default one before the barrier
			s.expectRouter("barrier", &router{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, HostPorts: nodePorts, Budget: "50%"})
			if s.find(operatorNamespace, "default", &operatorv1.IngressController{}) {
				t.Error("a default IngressController was created")
			}
		})
	})
}

// With --revert-placement the operator reverts a placement as itself, otherwise it does not.
func TestRevertPlacement(t *testing.T) {
	s := newSite(t, hosts()[0], sr, sr, []string{"--revert-placement"}, ingressController("default", replicas(1)), ingressController("other"))
	s.settled("default")
	s.settled("other")
	for _, name := range []string{"other", "default"} {
		change(s, ingressController(name), func(ic *operatorv1.IngressController) { pinned(&ic.Spec) })
	}
	s.eventually("the revert", func() string {
		if s.ingressController("default").Spec.NodePlacement != nil {
			return "still pinned"
		}
		return ""
	})
	s.expectRouter("other", &router{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, HostPorts: nodePorts})
	if s.ingressController("other").Spec.NodePlacement == nil {
		t.Error("another IngressController was reverted too")
	}
}
