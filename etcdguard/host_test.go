package etcdguard_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

// TestBudget shows R-SNO-3: wherever there is a guard, one at least may go.
func TestBudget(t *testing.T) {
	for _, mode := range allModes {
		for n := 1; n <= most; n++ {
			size := max(n, expected(mode))
			got := no(etcdguard.Budget(hostOf(mode, n)))
			if want := mayGo(mode, size); got != want {
				t.Errorf("%q, %d members: %d, want %d", mode, n, got, want)
			}
			if got > etcdguard.Tolerated(size) && (mode != dual || size != 2 || got != 1) {
				t.Errorf("%q, %d members: %d is more than quorum tolerates", mode, n, got)
			}
		}
	}
}

// What cannot be answered is an error, and never the answer for a highly available cluster.
func TestHostErrors(t *testing.T) {
	raw, half := clusterOf(sr), clusterOf(sr)
	raw.ControlPlane.Mode = unknown
	half.ControlPlane = topology.Reading{}
	for name, test := range map[string]struct {
		cluster topology.Cluster
		members int
		want    error
	}{
		"nothing":                 {topology.Cluster{}, 0, etcdguard.ErrNoTopology},
		"platform only":           {topology.Cluster{Platform: configv1.NonePlatformType}, 3, etcdguard.ErrNoTopology},
		"half a Cluster":          {half, 1, etcdguard.ErrNoTopology},
		"a mode that nobody read": {raw, 1, etcdguard.ErrNoTopology},
		"members not counted":     {clusterOf(ha), 0, etcdguard.ErrNoMembers},
		"the same on one node":    {clusterOf(sr), 0, etcdguard.ErrNoMembers},
		"less than nothing":       {clusterOf(external), -1, etcdguard.ErrNoMembers},
	} {
		host, err := etcdguard.NewHost(test.cluster, test.members, "cli")
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if host != (etcdguard.Host{}) {
			t.Errorf("%s: %+v", name, host)
		}
		if errors.Is(test.want, etcdguard.ErrNoTopology) {
			if guarded, err := etcdguard.Guarded(test.cluster); guarded || !errors.Is(err, etcdguard.ErrNoTopology) {
				t.Errorf("%s: Guarded %t, %v", name, guarded, err)
			}
			if nodes, err := etcdguard.Nodes(test.cluster, nodesOf(ha, 3)); nodes != nil || !errors.Is(err, etcdguard.ErrNoTopology) {
				t.Errorf("%s: Nodes %v, %v", name, nodes, err)
			}
			if minimum, err := etcdguard.MinimumMembers(test.cluster, nil); minimum != (etcdguard.Minimum{}) || !errors.Is(err, etcdguard.ErrNoTopology) {
				t.Errorf("%s: MinimumMembers %+v, %v", name, minimum, err)
			}
			if restart, err := etcdguard.SafeToRestart(test.cluster, membersOf(3, 3), 1); restart.Safe || !errors.Is(err, etcdguard.ErrNoTopology) {
				t.Errorf("%s: SafeToRestart %+v, %v", name, restart, err)
			}
		}
	}
	if _, err := etcdguard.NewHost(clusterOf(external), 0, ""); err != nil {
		t.Errorf("External has no members: %v", err)
	}

	var zero etcdguard.Host
	if size, err := etcdguard.Size(zero); size != 0 || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: Size %d, %v", size, err)
	}
	if budget, err := etcdguard.Budget(zero); budget != 0 || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: Budget %d, %v", budget, err)
	}
	if d, err := etcdguard.Deployment(zero); d != nil || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: Deployment %v, %v", d, err)
	}
	if b, err := etcdguard.DisruptionBudget(zero); b != nil || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: DisruptionBudget %v, %v", b, err)
	}
	if pods, err := etcdguard.Pods(zero, nodesOf(ha, 3)); pods != nil || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: Pods %v, %v", pods, err)
	}
	if b, err := etcdguard.PodsDisruptionBudget(zero); b != nil || !errors.Is(err, etcdguard.ErrHost) {
		t.Errorf("zero Host: PodsDisruptionBudget %v, %v", b, err)
	}

	for _, mode := range allModes {
		faceless := no(etcdguard.NewHost(clusterOf(mode), 3, ""))
		var noImage, noNodes error
		if needsGuard(mode) {
			noImage, noNodes = etcdguard.ErrNoImage, etcdguard.ErrNoNodes
		}
		if d, err := etcdguard.Deployment(faceless); d != nil || !errors.Is(err, noImage) {
			t.Errorf("%q, no image: Deployment %v, %v", mode, d, err)
		}
		if pods, err := etcdguard.Pods(faceless, nodesOf(ha, 3)); pods != nil || !errors.Is(err, noImage) {
			t.Errorf("%q, no image: Pods %v, %v", mode, pods, err)
		}
		for _, nodes := range [][]corev1.Node{nil, {}, {worker("w")}} {
			if pods, err := etcdguard.Pods(hostOf(mode, 3), nodes); pods != nil || !errors.Is(err, noNodes) {
				t.Errorf("%q, nodes %v: Pods %v, %v", mode, nodes, pods, err)
			}
		}
	}
	closed := master("m")
	closed.Spec.Unschedulable = true
	if pods, err := etcdguard.Pods(hostOf(ha, 3), []corev1.Node{closed}); pods == nil || len(pods) > 0 || err != nil {
		t.Errorf("every node cordoned: %v, %v; want an empty list, which is not that of no guard", pods, err)
	}
}

// TestGuardedAndSize shows R-ETC-2: the guard has the size that the topology asks for, and is off for a single member.
func TestGuardedAndSize(t *testing.T) {
	for _, mode := range allModes {
		if got := no(etcdguard.Guarded(clusterOf(mode))); got != needsGuard(mode) {
			t.Errorf("%q: guarded %t", mode, got)
		}
		for n := 1; n <= most; n++ {
			if got := no(etcdguard.Size(hostOf(mode, n))); got != max(n, expected(mode)) {
				t.Errorf("%q, %d members: size %d", mode, n, got)
			}
			host := hostOf(mode, n)
			made := []bool{no(etcdguard.Deployment(host)) != nil, no(etcdguard.DisruptionBudget(host)) != nil,
				no(etcdguard.Pods(host, nodesOf(mode, n))) != nil, no(etcdguard.PodsDisruptionBudget(host)) != nil}
			if slices.Contains(made, !needsGuard(mode)) {
				t.Errorf("%q, %d members: Deployment, budget, pods, budget over pods: %v", mode, n, made)
			}
		}
	}
}

// evictable is the disruption controller's rule for pods of a Deployment (expected: its replicas) or without one.
func evictable(t testing.TB, budget *policyv1.PodDisruptionBudget, expected, ready int) int {
	t.Helper()
	floor := 0
	switch {
	case budget.Spec.MinAvailable != nil && budget.Spec.MaxUnavailable != nil:
		t.Fatal("the API server refuses a budget with both")
	case budget.Spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, expected, true)
		if err != nil {
			t.Fatal(err)
		}
		floor = max(expected-n, 0)
	case budget.Spec.MinAvailable != nil:
		floor = budget.Spec.MinAvailable.IntValue()
	}
	return max(ready-floor, 0)
}

// Both shapes let exactly as many guards go as etcd can spare at that moment, for every number of members in every state of
// health, and none at all while there are fewer than the topology expects. Two that fence each other may lose one.
func TestEvictable(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, arbiter, dual, empty, unknown} {
		eachHealth(func(n int, members, healthy uint) {
			host := hostOf(mode, n)
			ready := bits.OnesCount(healthy) // a guard is ready beside a healthy member
			want := etcdguard.Spare(listed(members, healthy))
			switch {
			case n < expected(mode):
				// Not yet installed, or being replaced: as if the missing members were down.
				want = etcdguard.Spare(append(listed(members, healthy), make([]etcdguard.Member, expected(mode)-n)...))
			case mode == dual && n == 2:
				want = max(ready-1, 0)
			}
			deployment := no(etcdguard.Deployment(host))
			byDeployment := evictable(t, no(etcdguard.DisruptionBudget(host)), int(*deployment.Spec.Replicas), ready)
			byPods := evictable(t, no(etcdguard.PodsDisruptionBudget(host)), n, ready)
			if byDeployment != want || byPods != want {
				t.Errorf("%q, %d members, healthy %b: the Deployment lets %d go, the pods %d; etcd can spare %d", mode, n, healthy, byDeployment, byPods, want)
			}
		})
	}
}

func toleration(key, effect string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: "Exists", Effect: corev1.TaintEffect(effect)}
}

func TestDeployment(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, arbiter, dual, empty, unknown} {
		for n := range 6 {
			d := no(etcdguard.Deployment(hostOf(mode, n)))
			at := fmt.Sprintf("%q, %d members: ", mode, n)
			if d.Namespace != "openshift-etcd" || d.Name != "etcd-quorum-guard" || d.Kind != "Deployment" || d.APIVersion != "apps/v1" {
				t.Errorf("%sit is %s %s %s/%s", at, d.APIVersion, d.Kind, d.Namespace, d.Name)
			}
			if got := *d.Spec.Replicas; got != int32(max(n, expected(mode))) {
				t.Errorf("%s%d replicas", at, got)
			}
			// One leaves its node, then the next comes to that node; never two at a time.
			rolling := d.Spec.Strategy.RollingUpdate
			if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || rolling.MaxSurge.IntVal != 0 || rolling.MaxUnavailable.IntVal != 1 {
				t.Errorf("%sstrategy %+v", at, d.Spec.Strategy)
			}
			pod := d.Spec.Template.Spec
			selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
				t.Errorf("%sthe selector does not select the pods", at)
			}
			terms := []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "etcd-quorum-guard"}}}}
			if diff := cmp.Diff(terms, pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
				t.Errorf("%santi-affinity (-want +got):\n%s", at, diff)
			}
			tolerations := []corev1.Toleration{
				toleration("node-role.kubernetes.io/master", "NoSchedule"), toleration("node-role.kubernetes.io/control-plane", "NoSchedule"),
				toleration("node-role.kubernetes.io/etcd", "NoSchedule"),
				toleration("node.kubernetes.io/not-ready", "NoExecute"), toleration("node.kubernetes.io/unreachable", "NoExecute"),
			}
			if mode == arbiter {
				tolerations = append(tolerations, toleration("node-role.kubernetes.io/arbiter", "NoSchedule"))
			}
			if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" {
				t.Errorf("%stolerations (-want +got):\n%s", at, diff)
			}
			for _, on := range []struct {
				node corev1.Node
				want bool
			}{{master("m"), true}, {arbiterNode("a"), mode == arbiter}, {worker("w"), false}, {corev1.Node{}, false}} {
				if got := chooses(t, pod, on.node); got != on.want {
					t.Errorf("%sa node with %v: %t, want %t", at, on.node.Labels, got, on.want)
				}
			}
			checkPod(t, at, pod)
		}
	}
}

// chooses is the scheduler's rule for node selector and required node affinity.
func chooses(t testing.TB, pod corev1.PodSpec, node corev1.Node) bool {
	t.Helper()
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	if pod.Affinity.NodeAffinity == nil {
		return true
	}
	return slices.ContainsFunc(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, e := range term.MatchExpressions {
			if _, has := node.Labels[e.Key]; e.Operator != corev1.NodeSelectorOpExists || !has {
				return false
			}
		}
		return len(term.MatchExpressions) > 0
	})
}

// checkPod holds for the pods of both shapes.
func checkPod(t testing.TB, at string, pod corev1.PodSpec) {
	t.Helper()
	if !pod.HostNetwork || pod.PriorityClassName != "system-cluster-critical" || len(pod.Containers) != 1 {
		t.Errorf("%shost network %t, priority %q, %d containers", at, pod.HostNetwork, pod.PriorityClassName, len(pod.Containers))
	}
	c := pod.Containers[0]
	if c.Name != "guard" || c.Image != "cli" || c.SecurityContext.Privileged == nil || *c.SecurityContext.Privileged {
		t.Errorf("%scontainer %q, image %q, privileged %v", at, c.Name, c.Image, c.SecurityContext.Privileged)
	}
	mounted := map[string]string{}
	for _, mount := range c.VolumeMounts {
		for _, volume := range pod.Volumes {
			switch {
			case volume.Name != mount.Name || !mount.ReadOnly:
			case volume.Secret != nil:
				mounted[mount.MountPath+"/"] = "secret " + volume.Secret.SecretName
			case volume.ConfigMap != nil:
				mounted[mount.MountPath+"/"] = "configmap " + volume.ConfigMap.Name
			}
		}
	}
	command := c.ReadinessProbe.Exec.Command
	for flag, want := range map[string]string{
		"--cacert": "configmap etcd-ca-bundle ca-bundle.crt", "--cert": "secret etcd-client tls.crt", "--key": "secret etcd-client tls.key",
	} {
		i := slices.Index(command, flag)
		if i < 0 {
			t.Errorf("%sthe probe has no %s", at, flag)
			continue
		}
		folder, file := command[i+1][:strings.LastIndex(command[i+1], "/")+1], command[i+1][strings.LastIndex(command[i+1], "/")+1:]
		if got := mounted[folder] + " " + file; got != want {
			t.Errorf("%s%s is %q, want %q", at, flag, got, want)
		}
	}
	if command[0] != "curl" || !slices.Contains(command, "--fail") || command[len(command)-1] != "https://localhost:2379/health" {
		t.Errorf("%sthe probe is %v", at, command)
	}
	if p := c.ReadinessProbe; p.TimeoutSeconds <= 2 || p.PeriodSeconds*p.FailureThreshold > 15 {
		t.Errorf("%sthe probe takes too long, or is cut off: %+v", at, p)
	}
}

func TestDisruptionBudgets(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, arbiter, dual, empty, unknown} {
		for n := range 10 {
			size := max(n, expected(mode))
			budget, over := no(etcdguard.DisruptionBudget(hostOf(mode, n))), no(etcdguard.PodsDisruptionBudget(hostOf(mode, n)))
			if got := budget.Spec.MaxUnavailable.IntVal; got != int32(mayGo(mode, size)) || budget.Name != "etcd-quorum-guard" {
				t.Errorf("%q, %d members: %s maxUnavailable %d", mode, n, budget.Name, got)
			}
			if got := over.Spec.MinAvailable.IntVal; got != int32(size-mayGo(mode, size)) || over.Name != "etcd-guard-pdb" {
				t.Errorf("%q, %d members: %s minAvailable %d", mode, n, over.Name, got)
			}
			for _, b := range []*policyv1.PodDisruptionBudget{budget, over} {
				if b.Namespace != "openshift-etcd" || b.APIVersion != "policy/v1" || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.IfHealthyBudget {
					t.Errorf("%q, %d members: %s/%s, %s, %v", mode, n, b.Namespace, b.Name, b.APIVersion, *b.Spec.UnhealthyPodEvictionPolicy)
				}
			}
		}
	}
}

func TestNodes(t *testing.T) {
	both := master("both")
	both.Labels["node-role.kubernetes.io/worker"] = ""
	nodes := []corev1.Node{worker("w"), master("m"), arbiterNode("a"), both, {}}
	for _, mode := range allModes {
		want := []string{"m", "both"}
		switch mode {
		case arbiter:
			want = []string{"m", "a", "both"}
		case external:
			want = nil
		}
		var got []string
		for _, node := range no(etcdguard.Nodes(clusterOf(mode), nodes)) {
			got = append(got, node.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", mode, diff)
		}
	}
}

func TestPods(t *testing.T) {
	cordoned, tainted := master("cordoned"), master("tainted")
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}}
	flapping := master("flapping")
	flapping.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}
	// A cordon is the taint with the effect that the node controller gives it; the same key with another effect is somebody else's.
	otherwise, tried := master("otherwise"), master("tried")
	otherwise.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoExecute}}
	tried.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectPreferNoSchedule}}
	long, longer := master(strings.Repeat("n", 252)+"1"), master(strings.Repeat("n", 252)+"2")
	pods := no(etcdguard.Pods(hostOf(ha, 5), []corev1.Node{worker("w"), cordoned, tainted, flapping, otherwise, tried, long, longer, master("m")}))
	names := map[string]bool{}
	var on []string
	for _, pod := range pods {
		on = append(on, pod.Spec.NodeName)
		names[pod.Name] = true
		if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 || !strings.HasPrefix(pod.Name, "etcd-guard-") || pod.Namespace != "openshift-etcd" {
			t.Errorf("%s/%s: %v", pod.Namespace, pod.Name, problems)
		}
		if diff := cmp.Diff([]corev1.Toleration{{Operator: "Exists"}}, pod.Spec.Tolerations); diff != "" {
			t.Errorf("tolerations (-want +got):\n%s", diff)
		}
		budget := no(etcdguard.PodsDisruptionBudget(hostOf(ha, 5)))
		if !labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			t.Errorf("the budget does not select %v", pod.Labels)
		}
		checkPod(t, pod.Name+": ", pod.Spec)
	}
	if diff := cmp.Diff([]string{"flapping", "otherwise", "tried", long.Name, longer.Name, "m"}, on); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(names) != len(pods) {
		t.Error("two pods have one name")
	}
	if !names["etcd-guard-m"] {
		t.Errorf("no pod is called as upstream calls it: %v", names)
	}
}

// The same input gives the same bytes, and what was returned may be changed.
func TestHostIsPure(t *testing.T) {
	host := hostOf(arbiter, 3)
	made := func() string {
		return text(t, []any{no(etcdguard.Deployment(host)), no(etcdguard.DisruptionBudget(host)), no(etcdguard.Pods(host, nodesOf(arbiter, 3))), no(etcdguard.PodsDisruptionBudget(host))})
	}
	before := made()
	d := no(etcdguard.Deployment(host))
	d.Spec.Template.Labels["k8s-app"], d.Spec.Selector.MatchLabels["k8s-app"] = "x", "y"
	d.Spec.Template.Spec.Containers[0].Command[0] = "z"
	if after := made(); after != before {
		t.Error("changing what was returned changes the next")
	}
}
