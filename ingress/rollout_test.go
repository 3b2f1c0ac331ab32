// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

const unset = -1

// stockRollout returns maxUnavailable/maxSurge and anti-affinity that the stock operator sets on a highly available
// cluster, with and without host ports, and the budget, by spec.replicas (U-ING-6, U-ING-8).
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

// singleRollout is stockRollout where the topology of the router's pool is SingleReplica. Several routers have no
// anti-affinity.
func singleRollout(n int) (ports, shared, budget string) {
	switch {
	case n <= 1: // for one router this is 1/0 and 0/1
		return "25%/0", "25%/25%", "none"
	case n == 2:
		return "25%/0", "25%/25%", "1"
	}
	return "25%/0", "25%/25%", "25%"
}

// R-SNO-2, R-SNO-3, R-ING-1, R-ING-2: the rollout of one router on one node finishes and there is no budget; a highly
// available cluster has the values of the stock operator.
func TestRouterRollout(t *testing.T) {
	visited := 0
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range topologytest.AllModes {
			for _, where := range []string{"workers", "default placement", "pinned", "infra"} {
				for n := unset; n <= 12; n++ {
					for _, publishes := range []operatorv1.EndpointPublishingStrategyType{
						operatorv1.HostNetworkStrategyType, operatorv1.LoadBalancerServiceStrategyType,
						operatorv1.NodePortServiceStrategyType, operatorv1.PrivateStrategyType,
					} {
						visited++
						name := fmt.Sprintf("control plane %q, infrastructure %q, %s, replicas %d, %s", controlPlane, infrastructure, where, n, publishes)
						onControlPlane := (where == "default placement" || where == "pinned") && controlPlane != topologytest.External
						single := infrastructure == topologytest.SR
						if onControlPlane {
							single = controlPlane == topologytest.SR
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
								budget = "none" // a budget would block the drain of the only node
								if n > 1 {
									ports = "100%/0" // all must be deleted before a new one gets the ports
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
							changes = append(changes, fixture.Replicas(int32(n)))
						}
						def := configv1.DefaultPlacementWorkers
						switch where {
						case "default placement":
							def = configv1.DefaultPlacementControlPlane
						case "pinned":
							changes = append(changes, fixture.Placed(fixture.Pinned(t)))
						case "infra":
							changes = append(changes, fixture.Placed(fixture.Moved()))
						}
						host := newHost(t, fixture.ClusterOf(controlPlane, infrastructure), def, liveIC(changes...))
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

func rolloutOf(t *testing.T, host ingress.Host) string {
	t.Helper()
	router := shaped(t, manifest(), host)
	if router.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Fatalf("strategy is %q", router.Spec.Strategy.Type)
	}
	update := router.Spec.Strategy.RollingUpdate
	out := fmt.Sprint(*router.Spec.Replicas, ", ", update.MaxUnavailable, "/", update.MaxSurge)
	if router.Spec.Template.Spec.Affinity != nil {
		out += " apart"
	}
	budget := must[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, routerLabels))
	if budget == nil {
		return out + ", budget none"
	}
	if ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, "") != policyv1.AlwaysAllow {
		t.Errorf("the budget protects unhealthy pods: %v", budget.Spec)
	}
	return out + ", budget " + budget.Spec.MaxUnavailable.String()
}
