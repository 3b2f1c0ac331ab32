package topology_test

import (
	"errors"
	"fmt"
	"math"
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

func workers(replicas ...int64) []topology.ComputePool {
	var pools []topology.ComputePool
	for i, n := range replicas {
		pools = append(pools, topology.ComputePool{Name: fmt.Sprintf("pool%d", i), Replicas: count(n)})
	}
	return pools
}

// loadBalancerColumn is what the enhancement's table can say about a load balancer.
type loadBalancerColumn struct {
	needed   bool // "Yes"
	provided bool // "Yes - provided"
}

func (want loadBalancerColumn) check(t *testing.T, name string, got topology.LoadBalancer, day2 bool) {
	t.Helper()
	needed := got.Needed
	if day2 {
		needed = got.NeededWithWorkers
	}
	if needed != want.needed || needed && got.Provided != want.provided {
		t.Errorf("%s: load balancer needed %v, provided %v (%s), want needed %v, provided %v",
			name, needed, got.Provided, got.Reason, want.needed, want.provided)
	}
}

// The eight rows of the enhancement's table (R-TOP-5, R-TOP-6, R-TOP-7, R-TOP-9), written by hand. "-" cells are left empty and not checked. Where a row has
// day-2 workers the load-balancer columns speak of the cluster after they were added.
func TestEnhancementTable(t *testing.T) {
	no, yes, yesProvided := loadBalancerColumn{}, loadBalancerColumn{needed: true}, loadBalancerColumn{needed: true, provided: true}
	for _, row := range []struct {
		name      string
		platforms []configv1.PlatformType
		d1w       [][]topology.ComputePool
		d2w       bool
		cit, pit  configv1.TopologyMode
		ctp, ptp  topology.Pool
		replicas  int32
		// schedulable is not in the table: masters are workers too only without day-1 workers.
		schedulable   bool
		before, after loadBalancerColumn
		reason        string
	}{
		{
			name: "1 None, no workers", platforms: otherPlatforms, d1w: [][]topology.ComputePool{workers(0)},
			cit: sr, pit: sr, ctp: worker, ptp: master, replicas: 1, schedulable: true, before: no, after: no, reason: topology.LoadBalancerPinned,
		},
		{
			name: "2 Cloud, no workers", platforms: cloudPlatforms, d1w: [][]topology.ComputePool{workers(0)},
			cit: sr, pit: sr, ctp: worker, ptp: master, replicas: 1, schedulable: true, before: no, after: no, reason: topology.LoadBalancerPinned,
		},
		{
			name: "3 None, one day-1 worker", platforms: otherPlatforms, d1w: [][]topology.ComputePool{workers(1), workers(0, 1)},
			pit: sr, ptp: master, replicas: 1, before: yes, after: no, reason: topology.LoadBalancerPinned,
		},
		{
			name: "4 Cloud, one day-1 worker", platforms: cloudPlatforms, d1w: [][]topology.ComputePool{workers(1), workers(1, 0)},
			cit: sr, pit: ha, ctp: worker, ptp: worker, replicas: 2, before: yesProvided, after: yesProvided, reason: topology.LoadBalancerBalances,
		},
		{
			name: "5 None, several day-1 workers", platforms: otherPlatforms, d1w: [][]topology.ComputePool{workers(2), workers(7), workers(1, 1), nil},
			pit: sr, ptp: master, replicas: 1, before: yes, after: no, reason: topology.LoadBalancerPinned,
		},
		{
			name: "6 Cloud, several day-1 workers", platforms: cloudPlatforms, d1w: [][]topology.ComputePool{workers(2), workers(7), workers(1, 1), nil},
			cit: ha, pit: ha, ctp: worker, ptp: worker, replicas: 2, before: yesProvided, after: yesProvided, reason: topology.LoadBalancerBalances,
		},
		{
			name: "7 None, day-2 workers only", platforms: otherPlatforms, d1w: [][]topology.ComputePool{workers(0)}, d2w: true,
			cit: sr, pit: sr, ctp: worker, ptp: master, replicas: 1, schedulable: true, before: yes, after: no, reason: topology.LoadBalancerPinned,
		},
		{
			// The enhancement's last cell says "provided, ingress floats", beside a pool that pins it. Pinned is right.
			name: "8 Cloud, day-2 workers only", platforms: cloudPlatforms, d1w: [][]topology.ComputePool{workers(0)}, d2w: true,
			cit: sr, pit: sr, ctp: worker, ptp: master, replicas: 1, schedulable: true, before: yesProvided, after: no, reason: topology.LoadBalancerPinned,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, platform := range row.platforms {
				for _, compute := range row.d1w {
					install := topology.Install{Platform: platform, ControlPlane: count(1), Compute: compute}

					got, err := topology.Decide(install, topology.PolicyEnhancement)
					if err != nil {
						t.Fatal(err)
					}
					want := topology.Decision{
						ControlPlaneTopology:   sr,
						InfrastructureTopology: row.pit,
						IngressPool:            row.ptp,
						IngressReplicas:        row.replicas,
						MastersSchedulable:     row.schedulable,
						LoadBalancer:           got.LoadBalancer,
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("platform %q, compute %v, proposed (-want +got):\n%s", platform, compute, diff)
					}
					row.after.check(t, "proposed", got.LoadBalancer, row.d2w)
					if got.LoadBalancer.Reason != row.reason {
						t.Errorf("proposed reason: %q, want %q", got.LoadBalancer.Reason, row.reason)
					}

					byDefault, err := topology.Decide(install, "")
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(got, byDefault); diff != "" {
						t.Errorf("the default policy is not the enhancement's (-enhancement +default):\n%s", diff)
					}

					current, err := topology.Decide(install, topology.PolicyWorkerCount)
					if err != nil {
						t.Fatal(err)
					}
					if row.cit != "" && current.InfrastructureTopology != row.cit {
						t.Errorf("platform %q: CIT %s, want %s", platform, current.InfrastructureTopology, row.cit)
					}
					if row.ctp != "" && current.IngressPool != row.ctp {
						t.Errorf("platform %q: CTP %s, want %s", platform, current.IngressPool, row.ctp)
					}
					row.before.check(t, "current", current.LoadBalancer, row.d2w)
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
		name         string
		policy       topology.Policy
		platform     configv1.PlatformType
		controlPlane *int64
		arbiter      *int64
		compute      []topology.ComputePool

		cpt, it     configv1.TopologyMode
		placement   configv1.DefaultPlacement
		pool        topology.Pool
		replicas    int32
		schedulable bool
		reason      string
	}{
		// The enhancement's policy where the enhancement says nothing.
		{"enhancement, installer defaults", enhancement, aws, nil, nil, nil, ha, ha, "", worker, 2, false, topology.LoadBalancerBalances},
		{"enhancement, compact", enhancement, none, count(3), nil, workers(0), ha, ha, "", worker, 2, true, topology.LoadBalancerBalances},
		{"enhancement, three and one worker", enhancement, none, count(3), nil, workers(1), ha, sr, "", master, 2, false, topology.LoadBalancerBalances},
		{"enhancement, five and two workers", enhancement, metal, count(5), nil, workers(2), ha, ha, "", worker, 2, false, topology.LoadBalancerBalances},
		{"enhancement, two", enhancement, metal, count(2), nil, workers(0), dual, ha, "", worker, 2, true, topology.LoadBalancerBalances},
		{"enhancement, two and one worker", enhancement, metal, count(2), nil, workers(1), dual, sr, "", master, 2, false, topology.LoadBalancerBalances},
		{"enhancement, two and an arbiter", enhancement, metal, count(2), count(1), workers(0), arbiter, ha, "", worker, 2, true, topology.LoadBalancerBalances},
		{"enhancement, two and zero arbiters", enhancement, metal, count(2), count(0), workers(0), dual, ha, "", worker, 2, true, topology.LoadBalancerBalances},
		{"enhancement, an arbiter beside one", enhancement, metal, count(1), count(1), workers(0), sr, sr, "", master, 1, true, topology.LoadBalancerPinned},
		{"enhancement, an arbiter beside three", enhancement, metal, count(3), count(1), workers(0), ha, ha, "", worker, 2, true, topology.LoadBalancerBalances},

		// The rule that shipped first.
		{"shipped, None and no worker", shipped, none, count(1), nil, workers(0), sr, sr, "", worker, 1, true, topology.LoadBalancerOneNode},
		{"shipped, None and one worker", shipped, none, count(1), nil, workers(1), sr, sr, "", worker, 1, false, topology.LoadBalancerFloats},
		{"shipped, None and two workers", shipped, none, count(1), nil, workers(2), sr, ha, "", worker, 2, false, topology.LoadBalancerBalances},
		{"shipped, two", shipped, metal, count(2), nil, workers(0), sr, sr, "", worker, 1, true, topology.LoadBalancerFloats},
		{"shipped, two and an arbiter", shipped, metal, count(2), count(1), workers(2), sr, ha, "", worker, 2, false, topology.LoadBalancerBalances},
		{"shipped, three", shipped, aws, count(3), nil, workers(0), ha, ha, "", worker, 2, true, topology.LoadBalancerBalances},
		{"shipped, three and one worker", shipped, aws, count(3), nil, workers(1), ha, sr, "", worker, 1, false, topology.LoadBalancerFloats},

		// The newest rule: U-TOP-3 and U-TOP-6, row by row, then two and three control-plane replicas.
		{"newest, row 1", newest, none, count(1), nil, workers(0), sr, sr, "ControlPlane", master, 1, true, topology.LoadBalancerPinned},
		{"newest, row 2", newest, aws, count(1), nil, workers(0), sr, sr, "Workers", worker, 1, true, topology.LoadBalancerOneNode},
		{"newest, row 3", newest, none, count(1), nil, workers(1), sr, sr, "ControlPlane", master, 1, false, topology.LoadBalancerPinned},
		{"newest, row 4", newest, aws, count(1), nil, workers(1), sr, sr, "Workers", worker, 1, false, topology.LoadBalancerFloats},
		{"newest, row 5", newest, none, count(1), nil, workers(2), sr, ha, "ControlPlane", master, 1, false, topology.LoadBalancerPinned},
		{"newest, row 6", newest, aws, count(1), nil, workers(2), sr, ha, "Workers", worker, 2, false, topology.LoadBalancerBalances},
		{"newest, no platform is None", newest, "", count(1), nil, workers(0), sr, sr, "ControlPlane", master, 1, true, topology.LoadBalancerPinned},
		{"newest, BareMetal is not None", newest, metal, count(1), nil, workers(0), sr, sr, "Workers", worker, 1, true, topology.LoadBalancerOneNode},
		{"newest, External is not None", newest, configv1.ExternalPlatformType, count(1), nil, workers(2), sr, ha, "Workers", worker, 2, false, topology.LoadBalancerBalances},
		{"newest, two", newest, none, count(2), nil, workers(0), dual, ha, "Workers", worker, 2, true, topology.LoadBalancerBalances},
		{"newest, two and one worker", newest, none, count(2), nil, workers(1), dual, sr, "Workers", worker, 1, false, topology.LoadBalancerFloats},
		{"newest, two and an arbiter", newest, metal, count(2), count(1), workers(0), arbiter, ha, "Workers", worker, 2, true, topology.LoadBalancerBalances},
		{"newest, two, an arbiter, two workers", newest, metal, count(2), count(1), workers(2), arbiter, ha, "Workers", worker, 2, false, topology.LoadBalancerBalances},
		{"newest, three", newest, none, count(3), nil, workers(0), ha, ha, "Workers", worker, 2, true, topology.LoadBalancerBalances},
		{"newest, installer defaults", newest, none, nil, nil, nil, ha, ha, "Workers", worker, 2, false, topology.LoadBalancerBalances},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := topology.Decide(topology.Install{
				Platform: test.platform, ControlPlane: test.controlPlane, Arbiter: test.arbiter, Compute: test.compute,
			}, test.policy)
			if err != nil {
				t.Fatal(err)
			}
			want := topology.Decision{
				ControlPlaneTopology:   test.cpt,
				InfrastructureTopology: test.it,
				DefaultPlacement:       test.placement,
				IngressPool:            test.pool,
				IngressReplicas:        test.replicas,
				MastersSchedulable:     test.schedulable,
				LoadBalancer: topology.LoadBalancer{
					Needed:            test.reason == topology.LoadBalancerFloats || test.reason == topology.LoadBalancerBalances,
					NeededWithWorkers: test.reason != topology.LoadBalancerPinned,
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

// What install-config leaves out. With platform None and one control-plane replica PolicyWorkerCount shows the number of
// workers: none, one (SingleReplica, not schedulable), or more (HighlyAvailable).
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
		t.Run(test.name, func(t *testing.T) {
			got, err := topology.Decide(topology.Install{Platform: "None", ControlPlane: count(1), Compute: test.compute}, topology.PolicyWorkerCount)
			if err != nil {
				t.Fatal(err)
			}
			if got.InfrastructureTopology != test.it || got.MastersSchedulable != test.schedulable {
				t.Errorf("infrastructure %s, masters schedulable %v, want %s, %v", got.InfrastructureTopology, got.MastersSchedulable, test.it, test.schedulable)
			}
		})
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
		{"a negative pool is not made up for", topology.Install{Compute: workers(-1, 5)}, "", topology.ErrNegativeReplicas, []string{"compute[0]"}},
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
				for _, word := range test.words {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("error %q does not say %q", err, word)
					}
				}
				if got != (topology.Decision{}) {
					t.Errorf("an error came with a decision: %+v", got)
				}
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	want := []topology.Policy{"enhancement", "worker-count", "default-placement"}
	if diff := cmp.Diff(want, topology.Policies()); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	topology.Policies()[0] = "changed"
	if diff := cmp.Diff(want, topology.Policies()); diff != "" {
		t.Errorf("a caller's change reached the list (-want +got):\n%s", diff)
	}
}

// What holds for every decision, whatever the policy.
func TestDecisionsAreCoherent(t *testing.T) {
	for _, policy := range topology.Policies() {
		for _, platform := range slices.Concat(cloudPlatforms, otherPlatforms) {
			for controlPlane := int64(1); controlPlane <= 5; controlPlane++ {
				for arbiters := int64(0); arbiters <= 1; arbiters++ {
					for d1w := int64(0); d1w <= 3; d1w++ {
						install := topology.Install{
							Platform: platform, ControlPlane: &controlPlane, Arbiter: &arbiters, Compute: workers(d1w),
						}
						name := fmt.Sprintf("%s, %q, %d control plane, %d arbiters, %d workers", policy, platform, controlPlane, arbiters, d1w)
						got, err := topology.Decide(install, policy)
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						cluster, err := topology.FromInfrastructure(infrastructure(got.ControlPlaneTopology, got.InfrastructureTopology, platform))
						if err != nil {
							t.Fatal(err)
						}
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
