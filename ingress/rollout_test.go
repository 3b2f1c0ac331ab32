package ingress_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
)

const unset = -1

// stockRollout is what today's stock operator gives a router on a highly available cluster, by the number in spec.replicas: strategy and
// required anti-affinity on the host network and off it, and the budget (U-ING-6, U-ING-8).
func stockRollout(n int) (ports, shared, budget string) {
	switch {
	case n == unset:
		return "25%/0", "50%/25% apart", "50%"
	case n < 2:
		return "25%/0", "50%/25% apart", "none"
	case n == 2:
		return "25%/0", "50%/25% apart", "1"
	case n == 3:
		return "25%/0", "50%/25% apart", "25%"
	}
	return "25%/0", "25%/25% apart", "25%"
}

// singleRollout is the same where the topology of the router's pool is SingleReplica. One router is ours. More are the stock operator's,
// without anti-affinity: a pool of workers may have more nodes than its topology suggests.
func singleRollout(n int) (ports, shared, budget string) {
	switch {
	case n <= 1:
		return "1/0", "0/1", "none"
	case n == 2:
		return "25%/0", "25%/25%", "1"
	}
	return "25%/0", "25%/25%", "25%"
}

// TestRouterRollout shows R-SNO-2, R-SNO-3, R-ING-1 and R-ING-2, over all topologies, places, numbers of routers and ways to publish them:
// one router on one node rolls in the only way that ends, without a budget, and a highly available cluster has what the stock operator gives.
func TestRouterRollout(t *testing.T) {
	visited := 0
	for _, controlPlane := range allModes {
		for _, infrastructure := range allModes {
			for _, where := range []string{"workers", "default placement", "pinned", "infra"} {
				for n := unset; n <= 12; n++ {
					for _, publishes := range []operatorv1.EndpointPublishingStrategyType{
						operatorv1.HostNetworkStrategyType, operatorv1.LoadBalancerServiceStrategyType,
						operatorv1.NodePortServiceStrategyType, operatorv1.PrivateStrategyType,
					} {
						visited++
						name := fmt.Sprintf("control plane %q, infrastructure %q, %s, replicas %d, %s", controlPlane, infrastructure, where, n, publishes)
						onControlPlane := (where == "default placement" || where == "pinned") && controlPlane != external
						single := infrastructure == sr
						if onControlPlane {
							single = controlPlane == sr
						}
						ports, shared, budget := stockRollout(n)
						number := int32(n)
						if n == unset {
							number = 2
						}
						if single {
							ports, shared, budget = singleRollout(n)
							if n == unset {
								number = 1
							}
							if onControlPlane {
								budget = "none" // it would stop the drain of the only node
								if n > 1 {
									ports = "100%/0" // one has the ports, and the others are Pending: all must end before a new one gets them
								}
							}
						}
						want := shared
						if publishes == operatorv1.HostNetworkStrategyType {
							want = ports
						}
						want = fmt.Sprint(number, ", ", want, ", budget ", budget)

						changes := []func(*operatorv1.IngressController){publishing(publishes)}
						if n != unset {
							changes = append(changes, replicas(int32(n)))
						}
						def := configv1.DefaultPlacementWorkers
						switch where {
						case "default placement":
							def = configv1.DefaultPlacementControlPlane
						case "pinned":
							changes = append(changes, placed(pinned(t)))
						case "infra":
							changes = append(changes, placed(moved()))
						}
						host := newHost(t, clusterOf(controlPlane, infrastructure), def, liveIC(changes...))
						if got := rolloutOf(t, host); got != want {
							t.Errorf("%s: %s, want %s", name, got, want)
						}
					}
				}
			}
		}
	}
	if visited != 7*7*4*14*4 {
		t.Errorf("%d combinations visited", visited)
	}
}

// rolloutOf returns the router's replicas, rolling update, separation and budget, and fails the test where a function has another answer alone.
func rolloutOf(t *testing.T, host ingress.Host) string {
	t.Helper()
	router := shaped(t, manifest(), host)
	if router.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Fatalf("strategy is %q", router.Spec.Strategy.Type)
	}
	if n := no[int32](t)(ingress.EffectiveReplicas(host)); n != *router.Spec.Replicas {
		t.Errorf("%d effective replicas, shape has %d", n, *router.Spec.Replicas)
	}
	if diff := cmp.Diff(router.Spec.Strategy, no[appsv1.DeploymentStrategy](t)(ingress.RouterStrategy(host))); diff != "" {
		t.Errorf("strategy alone (-shape +alone):\n%s", diff)
	}
	apart := no[*corev1.PodAntiAffinity](t)(ingress.RouterAntiAffinity(host, routerLabels))
	var affinity *corev1.Affinity
	if apart != nil {
		affinity = &corev1.Affinity{PodAntiAffinity: apart}
	}
	if diff := cmp.Diff(router.Spec.Template.Spec.Affinity, affinity); diff != "" {
		t.Errorf("anti-affinity alone (-shape +alone):\n%s", diff)
	}
	update := router.Spec.Strategy.RollingUpdate
	out := fmt.Sprint(*router.Spec.Replicas, ", ", update.MaxUnavailable, "/", update.MaxSurge)
	if affinity != nil {
		out += " apart"
	}
	budget := no[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, routerLabels))
	if budget == nil {
		return out + ", budget none"
	}
	if ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, "") != policyv1.AlwaysAllow {
		t.Errorf("unhealthy pods are protected: %v", budget.Spec)
	}
	return out + ", budget " + budget.Spec.MaxUnavailable.String()
}
