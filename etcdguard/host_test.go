// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/patch/golden"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

func TestHostErrors(t *testing.T) {
	raw, half := fixture.ClusterOf(topologytest.SR), fixture.ClusterOf(topologytest.SR)
	raw.ControlPlane.Mode = topologytest.Unknown
	half.ControlPlane = topology.Reading{}
	for name, cluster := range map[string]topology.Cluster{
		"nothing": {}, "platform only": {Platform: configv1.NonePlatformType}, "half a Cluster": half, "a mode that was not read": raw,
	} {
		host, inHost := etcdguard.NewHost(cluster, 3, "cli")
		minimum, _, inMinimum := etcdguard.MinimumMembers(cluster, nil)
		remove, inRemove := etcdguard.SafeToRemove(cluster, nil, fixture.MembersOf(3, 3), 1)
		restart, inRestart := etcdguard.SafeToRestart(cluster, fixture.MembersOf(3, 3), 1)
		wantErrors(t, name, etcdguard.ErrNoTopology, inHost, inMinimum, inRemove, inRestart)
		if host != (etcdguard.Host{}) || minimum != 0 || remove.Safe || restart.Safe {
			t.Errorf("%s: %+v, %d, %+v, %+v", name, host, minimum, remove, restart)
		}
	}
	for mode, members := range map[configv1.TopologyMode]int{topologytest.HA: 0, topologytest.SR: 0, topologytest.External: -1} {
		host, err := etcdguard.NewHost(fixture.ClusterOf(mode), members, "cli")
		if wantErrors(t, string(mode), etcdguard.ErrNoMembers, err); host != (etcdguard.Host{}) {
			t.Errorf("%s, %d members: %+v", mode, members, host)
		}
	}
	for _, mode := range topologytest.AllModes {
		var noImage, noNodes error
		if fixture.NeedsGuard(mode) {
			noImage, noNodes = etcdguard.ErrNoImage, etcdguard.ErrNoNodes
		}
		wantNoPods(t, string(mode)+", no image", fixture.Must(etcdguard.NewHost(fixture.ClusterOf(mode), 3, "")), noImage)
		for _, nodes := range [][]corev1.Node{nil, {}, {fixture.Node("w", "worker")}} {
			pods, err := etcdguard.Pods(fixture.HostOf(mode, 3), nodes)
			if wantErrors(t, string(mode)+", no nodes", noNodes, err); pods != nil {
				t.Errorf("%q, nodes %v: Pods %v", mode, nodes, pods)
			}
		}
	}
	var zero etcdguard.Host
	wantNoPods(t, "zero Host", zero, etcdguard.ErrHost)
	size, inSize := etcdguard.Size(zero)
	budget, inBudget := etcdguard.DisruptionBudget(zero)
	over, inOver := etcdguard.PodsDisruptionBudget(zero)
	if wantErrors(t, "zero Host", etcdguard.ErrHost, inSize, inBudget, inOver); size != 0 || budget != nil || over != nil {
		t.Errorf("zero Host: %d, %v, %v", size, budget, over)
	}
}

func wantErrors(t *testing.T, name string, want error, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func wantNoPods(t *testing.T, name string, host etcdguard.Host, want error) {
	t.Helper()
	deployment, inDeployment := etcdguard.Deployment(host)
	pods, inPods := etcdguard.Pods(host, fixture.NodesOf(topologytest.HA, 3))
	if wantErrors(t, name, want, inDeployment, inPods); deployment != nil || pods != nil {
		t.Errorf("%s: Deployment %v, Pods %v", name, deployment, pods)
	}
}

// TestHostGolden also shows R-SNO-3: where there are guards, at least one may be evicted.
func TestHostGolden(t *testing.T) {
	golden.Test(t, "testdata/host", func(t *testing.T, input fs.FS) map[string]string {
		var given struct {
			Topology configv1.TopologyMode
			Members  int
		}
		fixture.Must(0, yaml.Unmarshal(fixture.Must(fs.ReadFile(input, "host.yaml")), &given))
		host := fixture.Must(etcdguard.NewHost(fixture.ClusterOf(given.Topology), given.Members, "cli"))
		var pod *corev1.Pod
		if pods := fixture.Must(etcdguard.Pods(host, fixture.NodesOf(given.Topology, given.Members))); len(pods) > 0 {
			pod = pods[0]
		}
		out := map[string]string{}
		for name, object := range map[string]any{
			"deployment.yaml": fixture.Must(etcdguard.Deployment(host)), "budget.yaml": fixture.Must(etcdguard.DisruptionBudget(host)),
			"pod.yaml": pod, "podsbudget.yaml": fixture.Must(etcdguard.PodsDisruptionBudget(host)),
		} {
			var content map[string]any
			fixture.Must(0, yaml.Unmarshal(fixture.Must(yaml.Marshal(object)), &content))
			delete(content, "status")
			out[name] = string(fixture.Must(yaml.Marshal(content)))
		}
		return out
	})
}

// TestGuardedAndSize shows R-ETC-2: the topology determines the number of guards.
func TestGuardedAndSize(t *testing.T) {
	for _, mode := range topologytest.AllModes {
		for n := 1; n <= maxMembers; n++ {
			if got := fixture.Must(etcdguard.Size(fixture.HostOf(mode, n))); got != max(n, fixture.ExpectedMembers(mode)) {
				t.Errorf("%q, %d members: size %d", mode, n, got)
			}
			host := fixture.HostOf(mode, n)
			made := []bool{fixture.Must(etcdguard.Deployment(host)) != nil, fixture.Must(etcdguard.DisruptionBudget(host)) != nil,
				fixture.Must(etcdguard.Pods(host, fixture.NodesOf(mode, n))) != nil, fixture.Must(etcdguard.PodsDisruptionBudget(host)) != nil}
			if slices.Contains(made, !fixture.NeedsGuard(mode)) {
				t.Errorf("%q, %d members: Deployment, budget, pods, budget over pods: %v", mode, n, made)
			}
		}
	}
}

// TestReadmeTable compares the table in README.md with the rules.
func TestReadmeTable(t *testing.T) {
	readme := string(fixture.Must(os.ReadFile("README.md")))
	for mode, name := range map[configv1.TopologyMode]string{
		topologytest.HA: "HighlyAvailable, empty, unknown", topologytest.Arbiter: string(topologytest.Arbiter), topologytest.Dual: string(topologytest.Dual), topologytest.SR: string(topologytest.SR), topologytest.External: string(topologytest.External),
	} {
		row := "none | no budget"
		if fixture.NeedsGuard(mode) {
			row = fmt.Sprintf("at least %d | %d of 3, %d of 4, %d of 5",
				fixture.ExpectedMembers(mode), fixture.MaxEvictions(mode, 3), fixture.MaxEvictions(mode, 4), fixture.MaxEvictions(mode, 5))
		}
		if row = fmt.Sprintf("\n| %s | %d | %s", name, fixture.ExpectedMembers(mode), row); !strings.Contains(readme, row) {
			t.Errorf("README.md lacks the row%s", row)
		}
	}
}

// evictable implements the disruption controller's rule for expected pods.
func evictable(budget *policyv1.PodDisruptionBudget, expected, ready int) int {
	if least := budget.Spec.MinAvailable; least != nil {
		return max(ready-least.IntValue(), 0)
	}
	most := fixture.Must(intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, expected, true))
	return max(ready-max(expected-most, 0), 0)
}

// TestEvictable checks that exactly as many guards may be evicted as etcd tolerates. Expected members that do not exist
// count as down; with fencing one of two may be evicted.
func TestEvictable(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{topologytest.HA, topologytest.Arbiter, topologytest.Dual, topologytest.Empty, topologytest.Unknown} {
		eachHealth(maxMembers, func(n int, members, healthy uint) {
			host := fixture.HostOf(mode, n)
			ready := bits.OnesCount(healthy) // a guard is ready if its member is healthy
			missing := max(fixture.ExpectedMembers(mode)-n, 0)
			want := tolerance(members<<missing|(1<<missing-1), healthy<<missing)
			if mode == topologytest.Dual && n == 2 {
				want = max(ready-1, 0)
			}
			deployment := fixture.Must(etcdguard.Deployment(host))
			byDeployment := evictable(fixture.Must(etcdguard.DisruptionBudget(host)), int(*deployment.Spec.Replicas), ready)
			byPods := evictable(fixture.Must(etcdguard.PodsDisruptionBudget(host)), n, ready)
			if byDeployment != want || byPods != want {
				t.Errorf("%q, %d members, healthy %b: %d pods of the Deployment may be evicted, %d of Pods; want %d",
					mode, n, healthy, byDeployment, byPods, want)
			}
		})
	}
}

func TestPods(t *testing.T) {
	tainted := func(name, key string, effect corev1.TaintEffect) corev1.Node {
		n := fixture.Node(name, "master")
		n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/" + key, Effect: effect}}
		return n
	}
	cordoned := fixture.Node("cordoned", "master")
	cordoned.Spec.Unschedulable = true
	want := []corev1.Node{
		tainted("flapping", "not-ready", corev1.TaintEffectNoSchedule),
		tainted("no-execute", "unschedulable", corev1.TaintEffectNoExecute), // a cordon is NoSchedule
		tainted("prefer-no-schedule", "unschedulable", corev1.TaintEffectPreferNoSchedule),
		fixture.Node(strings.Repeat("n", 252)+"1", "master"), fixture.Node(strings.Repeat("n", 252)+"2", "master"), fixture.Node("m", "master"),
	}
	others := []corev1.Node{fixture.Node("w", "worker"), cordoned, tainted("tainted", "unschedulable", corev1.TaintEffectNoSchedule)}
	budget := fixture.Must(etcdguard.PodsDisruptionBudget(fixture.HostOf(topologytest.HA, 5)))
	names := map[string]bool{}
	for i, pod := range fixture.Must(etcdguard.Pods(fixture.HostOf(topologytest.HA, 5), append(others, want...))) {
		names[pod.Name] = true
		if pod.Spec.NodeName != want[i].Name || pod.Namespace != "openshift-etcd" || !strings.HasPrefix(pod.Name, "etcd-guard-") {
			t.Errorf("%s/%s on %s; want it on %s", pod.Namespace, pod.Name, pod.Spec.NodeName, want[i].Name)
		}
		if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 {
			t.Errorf("%s: %v", pod.Name, problems)
		}
		if !labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the budget does not select %v", pod.Labels)
		}
	}
	if len(names) != len(want) || !names["etcd-guard-m"] {
		t.Errorf("names: %v", names)
	}
	if pods := fixture.Must(etcdguard.Pods(fixture.HostOf(topologytest.HA, 3), []corev1.Node{cordoned})); pods == nil || len(pods) > 0 {
		t.Errorf("every node cordoned: %v; want an empty list that is not nil", pods)
	}
}

func TestPodsAreOnMembers(t *testing.T) {
	both := fixture.Node("both", "master")
	both.Labels["node-role.kubernetes.io/worker"] = ""
	nodes := []corev1.Node{fixture.Node("w", "worker"), fixture.Node("m", "master"), fixture.Node("a", "arbiter"), both, {}}
	for mode, want := range map[configv1.TopologyMode]string{
		topologytest.HA: " m both", topologytest.Empty: " m both", topologytest.Unknown: " m both", topologytest.Dual: " m both", topologytest.Arbiter: " m a both", topologytest.SR: "", topologytest.External: "",
	} {
		on := ""
		for _, pod := range fixture.Must(etcdguard.Pods(fixture.HostOf(mode, 3), nodes)) {
			on += " " + pod.Spec.NodeName
		}
		if on != want {
			t.Errorf("%q: pods on %q, want %q", mode, on, want)
		}
	}
}

func TestHostIsPure(t *testing.T) {
	made := func() *appsv1.Deployment {
		return fixture.Must(etcdguard.Deployment(fixture.HostOf(topologytest.Arbiter, 3)))
	}
	before, d := fixture.Text(made()), made()
	d.Spec.Template.Labels["k8s-app"], d.Spec.Selector.MatchLabels["k8s-app"] = "x", "y"
	d.Spec.Template.Spec.Containers[0].Command[0] = "z"
	if after := fixture.Text(made()); after != before {
		t.Error("a change of the result changes the next result")
	}
}
