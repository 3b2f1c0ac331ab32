// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

const (
	master = topology.ControlPlanePool
	worker = topology.WorkerPool

	pinned, oneNode  = topology.LoadBalancerPinnedRouter, topology.LoadBalancerOneNode
	floats, balances = topology.LoadBalancerFloatingRouter, topology.LoadBalancerSeveralRouters
)

var (
	cloudPlatforms = []configv1.PlatformType{
		configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType,
		configv1.IBMCloudPlatformType, configv1.PowerVSPlatformType,
	}
	otherPlatforms = []configv1.PlatformType{
		configv1.NonePlatformType, configv1.ExternalPlatformType, configv1.BareMetalPlatformType,
		configv1.OpenStackPlatformType, configv1.VSpherePlatformType, configv1.OvirtPlatformType,
		configv1.NutanixPlatformType, configv1.KubevirtPlatformType, configv1.AlibabaCloudPlatformType,
		configv1.LibvirtPlatformType, configv1.EquinixMetalPlatformType, "", "Moon",
	}
)

func decide(t *testing.T, install topology.Install, policy topology.Policy) topology.Decision {
	t.Helper()
	decision, err := topology.Decide(install, policy)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

func workers(replicas ...int64) []topology.ComputePool {
	var pools []topology.ComputePool
	for i, n := range replicas {
		pools = append(pools, topology.ComputePool{Name: fmt.Sprintf("pool%d", i), Replicas: count(n)})
	}
	return pools
}

// balancer returns a cell of the enhancement's table: whether a load balancer is needed.
func balancer(b topology.LoadBalancer, day2 bool) string {
	switch needed := b.Needed && !day2 || b.NeededWithWorkers && day2; {
	case needed && b.Provided:
		return "provided"
	case needed:
		return "yes"
	}
	return "no"
}

// The rows of the enhancement's table (R-TOP-5, R-TOP-6, R-TOP-7, R-TOP-9). Its "-" cells are not checked.
func TestEnhancementTable(t *testing.T) {
	none, one, several := [][]topology.ComputePool{workers(0)}, [][]topology.ComputePool{workers(1), workers(0, 1), workers(1, 0)},
		[][]topology.ComputePool{workers(2), workers(7), workers(1, 1), nil}
	for _, row := range []struct {
		name                  string
		platforms             []configv1.PlatformType
		d1w                   [][]topology.ComputePool
		d2w                   bool
		cit, pit              configv1.TopologyMode
		ctp, ptp              topology.Pool
		replicas              int32
		schedulable           bool
		before, after, reason string
	}{
		{"1 None, no workers", otherPlatforms, none, false, sr, sr, worker, master, 1, true, "no", "no", pinned},
		{"2 cloud, no workers", cloudPlatforms, none, false, sr, sr, worker, master, 1, true, "no", "no", pinned},
		{"3 None, one day-1 worker", otherPlatforms, one, false, "", sr, "", master, 1, false, "yes", "no", pinned},
		{"4 cloud, one day-1 worker", cloudPlatforms, one, false, sr, ha, worker, worker, 2, false, "provided", "provided", balances},
		{"5 None, several day-1 workers", otherPlatforms, several, false, "", sr, "", master, 1, false, "yes", "no", pinned},
		{"6 cloud, several day-1 workers", cloudPlatforms, several, false, ha, ha, worker, worker, 2, false, "provided", "provided", balances},
		{"7 None, day-2 workers only", otherPlatforms, none, true, sr, sr, worker, master, 1, true, "yes", "no", pinned},
		// The last cell of the table, "provided, ingress floats", contradicts its pool, which pins ingress.
		{"8 cloud, day-2 workers only", cloudPlatforms, none, true, sr, sr, worker, master, 1, true, "provided", "no", pinned},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, platform := range row.platforms {
				for _, compute := range row.d1w {
					install := topology.Install{Platform: platform, ControlPlane: count(1), Compute: compute}
					got, byDefault := decide(t, install, topology.PolicyEnhancement), decide(t, install, "")
					want := topology.Decision{
						ControlPlaneTopology: sr, InfrastructureTopology: row.pit, IngressPool: row.ptp, IngressReplicas: row.replicas,
						MastersSchedulable: row.schedulable, LoadBalancer: got.LoadBalancer,
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("platform %q, compute %v, proposed (-want +got):\n%s", platform, compute, diff)
					}
					if cell := balancer(got.LoadBalancer, row.d2w); cell != row.after || got.LoadBalancer.Reason != row.reason {
						t.Errorf("platform %q, proposed load balancer: %s (%s), want %s (%s)", platform, cell, got.LoadBalancer.Reason, row.after, row.reason)
					}
					if diff := cmp.Diff(got, byDefault); diff != "" {
						t.Errorf("the default policy is not the enhancement's (-enhancement +default):\n%s", diff)
					}

					current := decide(t, install, topology.PolicyWorkerCount)
					if row.cit != "" && (current.InfrastructureTopology != row.cit || current.IngressPool != row.ctp) {
						t.Errorf("platform %q, current: %s in %s, want %s in %s", platform, current.InfrastructureTopology, current.IngressPool, row.cit, row.ctp)
					}
					if cell := balancer(current.LoadBalancer, row.d2w); cell != row.before {
						t.Errorf("platform %q, current load balancer: %s, want %s", platform, cell, row.before)
					}
				}
			}
		})
	}
}

func TestDecide(t *testing.T) {
	const (
		none  = configv1.NonePlatformType
		aws   = configv1.AWSPlatformType
		metal = configv1.BareMetalPlatformType

		enhancement, shipped, newest = topology.PolicyEnhancement, topology.PolicyWorkerCount, topology.PolicyDefaultPlacement
	)
	for _, test := range []struct {
		name                  string
		policy                topology.Policy
		platform              configv1.PlatformType
		controlPlane, arbiter *int64
		compute               []topology.ComputePool
		cpt, it               configv1.TopologyMode
		placement             configv1.DefaultPlacement
		pool                  topology.Pool
		replicas              int32
		schedulable           bool
		reason                string
	}{
		{"enhancement, installer defaults", enhancement, aws, nil, nil, nil, ha, ha, "", worker, 2, false, balances},
		{"enhancement, compact", enhancement, none, count(3), nil, workers(0), ha, ha, "", worker, 2, true, balances},
		{"enhancement, three and one worker", enhancement, none, count(3), nil, workers(1), ha, sr, "", master, 2, false, balances},
		{"enhancement, five and two workers", enhancement, metal, count(5), nil, workers(2), ha, ha, "", worker, 2, false, balances},
		{"enhancement, two", enhancement, metal, count(2), nil, workers(0), dual, ha, "", worker, 2, true, balances},
		{"enhancement, two and one worker", enhancement, metal, count(2), nil, workers(1), dual, sr, "", master, 2, false, balances},
		{"enhancement, two and an arbiter", enhancement, metal, count(2), count(1), workers(0), arbiter, ha, "", worker, 2, true, balances},
		{"enhancement, two and zero arbiters", enhancement, metal, count(2), count(0), workers(0), dual, ha, "", worker, 2, true, balances},
		{"enhancement, an arbiter with one", enhancement, metal, count(1), count(1), workers(0), sr, sr, "", master, 1, true, pinned},
		{"enhancement, an arbiter with three", enhancement, metal, count(3), count(1), workers(0), arbiter, ha, "", worker, 2, true, balances},

		{"shipped, None and no worker", shipped, none, count(1), nil, workers(0), sr, sr, "", worker, 1, true, oneNode},
		{"shipped, None and one worker", shipped, none, count(1), nil, workers(1), sr, sr, "", worker, 1, false, floats},
		{"shipped, None and two workers", shipped, none, count(1), nil, workers(2), sr, ha, "", worker, 2, false, balances},
		{"shipped, two", shipped, metal, count(2), nil, workers(0), sr, sr, "", worker, 1, true, floats},
		{"shipped, two and an arbiter", shipped, metal, count(2), count(1), workers(2), sr, ha, "", worker, 2, false, balances},
		{"shipped, three", shipped, aws, count(3), nil, workers(0), ha, ha, "", worker, 2, true, balances},
		{"shipped, three and one worker", shipped, aws, count(3), nil, workers(1), ha, sr, "", worker, 1, false, floats},

		// The newest rule: the rows of U-TOP-3 and U-TOP-6, then two and three control-plane replicas.
		{"newest, row 1", newest, none, count(1), nil, workers(0), sr, sr, "ControlPlane", master, 1, true, pinned},
		{"newest, row 2", newest, aws, count(1), nil, workers(0), sr, sr, "Workers", worker, 1, true, oneNode},
		{"newest, row 3", newest, none, count(1), nil, workers(1), sr, sr, "ControlPlane", master, 1, false, pinned},
		{"newest, row 4", newest, aws, count(1), nil, workers(1), sr, sr, "Workers", worker, 1, false, floats},
		{"newest, row 5", newest, none, count(1), nil, workers(2), sr, ha, "ControlPlane", master, 1, false, pinned},
		{"newest, row 6", newest, aws, count(1), nil, workers(2), sr, ha, "Workers", worker, 2, false, balances},
		{"newest, no platform is None", newest, "", count(1), nil, workers(0), sr, sr, "ControlPlane", master, 1, true, pinned},
		{"newest, BareMetal is not None", newest, metal, count(1), nil, workers(0), sr, sr, "Workers", worker, 1, true, oneNode},
		{"newest, External is not None", newest, configv1.ExternalPlatformType, count(1), nil, workers(2), sr, ha, "Workers", worker, 2, false, balances},
		{"newest, two", newest, none, count(2), nil, workers(0), dual, ha, "Workers", worker, 2, true, balances},
		{"newest, two and one worker", newest, none, count(2), nil, workers(1), dual, sr, "Workers", worker, 1, false, floats},
		{"newest, two and an arbiter", newest, metal, count(2), count(1), workers(0), arbiter, ha, "Workers", worker, 2, true, balances},
		{"newest, four and an arbiter", newest, metal, count(4), count(1), workers(2), arbiter, ha, "Workers", worker, 2, false, balances},
		{"newest, two, an arbiter, two workers", newest, metal, count(2), count(1), workers(2), arbiter, ha, "Workers", worker, 2, false, balances},
		{"newest, three", newest, none, count(3), nil, workers(0), ha, ha, "Workers", worker, 2, true, balances},
		{"newest, installer defaults", newest, none, nil, nil, nil, ha, ha, "Workers", worker, 2, false, balances},
	} {
		t.Run(test.name, func(t *testing.T) {
			install := topology.Install{Platform: test.platform, ControlPlane: test.controlPlane, Arbiter: test.arbiter, Compute: test.compute}
			got := decide(t, install, test.policy)
			want := topology.Decision{
				ControlPlaneTopology: test.cpt, InfrastructureTopology: test.it, DefaultPlacement: test.placement,
				IngressPool: test.pool, IngressReplicas: test.replicas, MastersSchedulable: test.schedulable,
				LoadBalancer: topology.LoadBalancer{
					Needed:            test.reason == floats || test.reason == balances,
					NeededWithWorkers: test.reason != pinned,
					Provided:          test.platform == aws,
					Reason:            test.reason,
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstallDefaults(t *testing.T) {
	for _, test := range []struct {
		name        string
		compute     []topology.ComputePool
		it          configv1.TopologyMode
		schedulable bool
	}{
		{"no list", nil, ha, false},
		{"empty list", []topology.ComputePool{}, ha, false},
		{"pool without replicas", []topology.ComputePool{{Name: "worker"}}, ha, false},
		{"pool of zero", workers(0), sr, true},
		{"two pools of zero", workers(0, 0), sr, true},
		{"pools of zero and one", workers(0, 1), sr, false},
		{"pools of one and one", workers(1, 1), ha, false},
		{"a pool of zero and one without replicas", append(workers(0), topology.ComputePool{Name: "worker"}), ha, false},
		{"an edge pool without replicas adds none", append(workers(0), topology.ComputePool{Name: "edge"}), sr, true},
		{"an edge pool with replicas counts", append(workers(0), topology.ComputePool{Name: "edge", Replicas: count(2)}), ha, false},
		{"sums do not overflow", workers(math.MaxInt64, math.MaxInt64, 1), ha, false},
	} {
		got := decide(t, topology.Install{Platform: "None", ControlPlane: count(1), Compute: test.compute}, topology.PolicyWorkerCount)
		if got.InfrastructureTopology != test.it || got.MastersSchedulable != test.schedulable {
			t.Errorf("%s: %s, masters schedulable %v, want %s, %v", test.name, got.InfrastructureTopology, got.MastersSchedulable, test.it, test.schedulable)
		}
	}
}

func TestDecideErrors(t *testing.T) {
	for _, test := range []struct {
		name    string
		install topology.Install
		policy  topology.Policy
		want    error
		words   []string
	}{
		{"negative control plane", topology.Install{ControlPlane: count(-1)}, "", topology.ErrNegativeReplicas, []string{"controlPlane", "-1"}},
		{"no control plane", topology.Install{ControlPlane: count(0)}, "", topology.ErrNoControlPlane, []string{"controlPlane"}},
		{"negative arbiter", topology.Install{ControlPlane: count(2), Arbiter: count(-2)}, "", topology.ErrNegativeReplicas, []string{"arbiter", "-2"}},
		{"negative pool", topology.Install{Compute: workers(3, -3)}, "", topology.ErrNegativeReplicas, []string{"compute[1]", `"pool1"`, "-3"}},
		{"a negative pool with a positive one", topology.Install{Compute: workers(-1, 5)}, "", topology.ErrNegativeReplicas, []string{"compute[0]"}},
		{"unknown policy", topology.Install{}, "guess", topology.ErrUnknownPolicy, []string{`"guess"`, "enhancement", "worker-count", "default-placement"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			policies := topology.Policies()
			if test.policy != "" {
				policies = []topology.Policy{test.policy}
			}
			for _, policy := range policies {
				got, err := topology.Decide(test.install, policy)
				if !errors.Is(err, test.want) {
					t.Fatalf("policy %s: error = %v, want %v", policy, err, test.want)
				}
				contains(t, err, test.words)
				if got != (topology.Decision{}) {
					t.Errorf("an error came with a decision: %+v", got)
				}
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	for range 2 { // a caller's change must not reach the list
		got := topology.Policies()
		if diff := cmp.Diff([]topology.Policy{"enhancement", "worker-count", "default-placement"}, got); diff != "" {
			t.Errorf("policies (-want +got):\n%s", diff)
		}
		got[0] = "changed"
	}
}

func TestDecisionsAreCoherent(t *testing.T) {
	for _, policy := range topology.Policies() {
		for _, platform := range slices.Concat(cloudPlatforms, otherPlatforms) {
			for controlPlane := int64(1); controlPlane <= 5; controlPlane++ {
				for arbiters := int64(0); arbiters <= 1; arbiters++ {
					for d1w := int64(0); d1w <= 3; d1w++ {
						install := topology.Install{Platform: platform, ControlPlane: &controlPlane, Arbiter: &arbiters, Compute: workers(d1w)}
						name := fmt.Sprintf("%s, %q, %d control plane, %d arbiters, %d workers", policy, platform, controlPlane, arbiters, d1w)
						got := decide(t, install, policy)
						cluster := clusterOf(got.ControlPlaneTopology, got.InfrastructureTopology)
						if findings := cluster.Findings(); findings != nil {
							t.Errorf("%s: writes topologies that the API does not allow: %v", name, findings)
						}
						if want := topology.Replicas(cluster.Governing(got.IngressPool)); got.IngressReplicas != want {
							t.Errorf("%s: %d routers in pool %s, want %d", name, got.IngressReplicas, got.IngressPool, want)
						}
						if got.MastersSchedulable != (d1w == 0) {
							t.Errorf("%s: masters schedulable: %v", name, got.MastersSchedulable)
						}
						if (got.DefaultPlacement != "") != (policy == topology.PolicyDefaultPlacement) {
							t.Errorf("%s: default placement %q", name, got.DefaultPlacement)
						}
						if policy == topology.PolicyEnhancement && (got.IngressPool == master) != (got.InfrastructureTopology == sr) {
							t.Errorf("%s: %s, yet ingress is in pool %s", name, got.InfrastructureTopology, got.IngressPool)
						}
						if balancer := got.LoadBalancer; balancer.Needed && !balancer.NeededWithWorkers || balancer.Reason == "" {
							t.Errorf("%s: %+v", name, balancer)
						}
						if got.LoadBalancer.Provided != slices.Contains(cloudPlatforms, platform) {
							t.Errorf("%s: provided: %v", name, got.LoadBalancer.Provided)
						}
					}
				}
			}
		}
	}
}

func TestReadmeTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct{ platform, day1, day2 string }{
		{"None", "0", "0"},
		{"AWS", "0", "0"},
		{"None", "1", "any"},
		{"AWS", "1", "any"},
		{"None", "2+", "any"},
		{"AWS", "2+", "any"},
		{"None", "0", "1+"},
		{"AWS", "0", "1+"},
	} {
		line := fmt.Sprintf("| %d | %s | %s | %s |", i+1, row.platform, row.day1, row.day2)
		for _, policy := range topology.Policies() {
			decision := decide(t, topology.Install{
				Platform: configv1.PlatformType(row.platform), ControlPlane: count(1), Compute: workers(int64(row.day1[0] - '0')),
			}, policy)
			short := "SR"
			if decision.InfrastructureTopology != sr {
				short = "HA"
			}
			needed := balancer(decision.LoadBalancer, row.day2 == "1+")
			line += fmt.Sprintf(" %s, %d on %s, LB %s |", short, decision.IngressReplicas, decision.IngressPool, needed)
		}
		if !strings.Contains(string(readme), line+"\n") {
			t.Errorf("README.md lacks the line\n%s", line)
		}
	}
}
