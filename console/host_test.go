package console_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

func TestReplicasAndPool(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		cluster := clusterOf(controlPlane, infrastructure)
		wantReplicas, wantPool := int32(2), topology.ControlPlanePool
		if single {
			wantReplicas = 1
		}
		if onWorkers {
			wantPool = topology.WorkerPool
		}
		if got, err := console.Replicas(cluster); err != nil || got != wantReplicas {
			t.Errorf("control plane %q, infrastructure %q: %d replicas, %v, want %d", controlPlane, infrastructure, got, err, wantReplicas)
		}
		if got, err := console.Pool(cluster); err != nil || got != wantPool {
			t.Errorf("control plane %q, infrastructure %q: pool %s, %v, want %s", controlPlane, infrastructure, got, err, wantPool)
		}
	})
}

// A Cluster that nobody read, or half of one, has no answer, and not that of a highly available one.
func TestClusterNotRead(t *testing.T) {
	half := topology.Cluster{ControlPlane: topology.ReadingOf(sr)}
	other := topology.Cluster{Infrastructure: topology.ReadingOf(sr)}
	for name, cluster := range map[string]topology.Cluster{"zero": {}, "no infrastructure": half, "no control plane": other} {
		for function, call := range map[string]func() (any, error){
			"Pool":                   func() (any, error) { return console.Pool(cluster) },
			"Replicas":               func() (any, error) { return console.Replicas(cluster) },
			"ShapeDeployment":        func() (any, error) { return console.ShapeDeployment(manifest("console"), cluster) },
			"DeploymentStrategy":     func() (any, error) { return console.DeploymentStrategy(cluster) },
			"DeploymentAntiAffinity": func() (any, error) { return console.DeploymentAntiAffinity(cluster, nil) },
			"PodDisruptionBudget":    func() (any, error) { return console.PodDisruptionBudget("console", cluster) },
		} {
			got, err := call()
			if !errors.Is(err, topology.ErrClusterNotRead) || !reflect.ValueOf(got).IsZero() {
				t.Errorf("%s, %s: %v, %v, want no answer and %v", function, name, got, err, topology.ErrClusterNotRead)
			}
		}
		in := inputs(func(in *console.Inputs) { in.Cluster = &cluster })
		decision := console.Decide(in)
		for which, step := range map[string]console.DeploymentStep{"console": decision.Console, "downloads": decision.Downloads} {
			if step.Intent != nil || step.Release || step.Result == nil || step.Result.Reason != "Invalid" {
				t.Errorf("Decide, %s, %s: %+v, want nothing but Invalid", which, name, step)
			}
		}
	}
}

// TestShapeDeployment shows R-CON-1, R-CON-3 and R-SNO-2: the whole shape for every pair of topologies and both
// Deployments, against one written by hand.
func TestShapeDeployment(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			want := shaped(name)
			if !single {
				want.Spec.Replicas = ptr.To[int32](2)
				want.Spec.Strategy = strategy(intstr.FromInt32(1), intstr.FromInt32(3))
				want.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: spread(component)}}
			}
			if onWorkers {
				want.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
				want.Spec.Template.Spec.Tolerations = []corev1.Toleration{notReady()}
			}
			for from, start := range map[string]*appsv1.Deployment{"the manifest": manifest(name), "the shape of one node": shaped(name)} {
				before := start.DeepCopy()
				got := shapedFor(t, start, clusterOf(controlPlane, infrastructure))
				if diff := cmp.Diff(before, start); diff != "" {
					t.Fatalf("the argument was changed:\n%s", diff)
				}
				if from == "the shape of one node" && !onWorkers {
					got.Spec.Template.Spec.Tolerations = want.Spec.Template.Spec.Tolerations
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s from %s, control plane %q, infrastructure %q (-want +got):\n%s", name, from, controlPlane, infrastructure, diff)
				}
				if again := shapedFor(t, got, clusterOf(controlPlane, infrastructure)); !cmp.Equal(got, again) {
					t.Errorf("%s, control plane %q, infrastructure %q: shaping twice is not shaping once", name, controlPlane, infrastructure)
				}
			}
		}
	})
}

// shapedFor is ShapeDeployment where it must not fail.
func shapedFor(t testing.TB, d *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	t.Helper()
	got, err := console.ShapeDeployment(d, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What is not part of the shape stays, and nothing of the result is shared with the argument.
func TestShapeDeploymentLeavesTheRest(t *testing.T) {
	node := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	together := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 2}}}
	preferred := []corev1.WeightedPodAffinityTerm{{Weight: 3, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"}}, TopologyKey: corev1.LabelTopologyZone,
	}}}
	start := manifest("downloads", func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"a": "b"}
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "disk": "ssd",
			"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}
		d.Spec.Template.Spec.Affinity.NodeAffinity, d.Spec.Template.Spec.Affinity.PodAffinity = node, together
		d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred
		d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	})
	for _, mode := range allModes {
		got := shapedFor(t, start, clusterOf(mode, mode)).Spec.Template.Spec
		if diff := cmp.Diff(node, got.Affinity.NodeAffinity); diff != "" {
			t.Errorf("%q: node affinity:\n%s", mode, diff)
		}
		if diff := cmp.Diff(together, got.Affinity.PodAffinity); diff != "" {
			t.Errorf("%q: pod affinity:\n%s", mode, diff)
		}
		if diff := cmp.Diff(preferred, got.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution); diff != "" {
			t.Errorf("%q: preferred zones:\n%s", mode, diff)
		}
		if got.NodeSelector["disk"] != "ssd" || got.NodeSelector["kubernetes.io/os"] != "linux" {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		if _, master := got.NodeSelector["node-role.kubernetes.io/master"]; master == (mode == external) {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		if _, controlPlane := got.NodeSelector["node-role.kubernetes.io/control-plane"]; mode == external && controlPlane {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		kept := map[string]bool{}
		for _, toleration := range got.Tolerations {
			kept[toleration.Key] = true
		}
		if !kept["dedicated"] || !kept["node.kubernetes.io/not-ready"] || kept["node-role.kubernetes.io/master"] == (mode == external) {
			t.Errorf("%q: tolerations %v", mode, got.Tolerations)
		}
	}
}

// A selector and tolerations agree: whatever is pinned tolerates the taints of where it is pinned to, and nothing else does.
func TestSelectorAndTolerationsAgree(t *testing.T) {
	bare := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Tolerations = nil, nil
	}
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, _, onWorkers bool) {
		pod := shapedFor(t, manifest("console", bare), clusterOf(controlPlane, infrastructure)).Spec.Template.Spec
		wantSelector, wantTolerations := map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{role("master"), role("control-plane")}
		if onWorkers {
			wantSelector, wantTolerations = nil, nil
		}
		if diff := cmp.Diff(wantSelector, pod.NodeSelector) + cmp.Diff(wantTolerations, pod.Tolerations); diff != "" {
			t.Errorf("control plane %q, infrastructure %q (-want +got):\n%s", controlPlane, infrastructure, diff)
		}
	})
}

// The anti-affinity is about what the Deployment's own selector selects, whatever its name. Without a selector it would keep console and
// downloads apart, or nothing.
func TestShapeDeploymentSelector(t *testing.T) {
	expressions := []metav1.LabelSelectorRequirement{{Key: "component", Operator: metav1.LabelSelectorOpIn, Values: []string{"downloads"}}}
	for name, selector := range map[string]*metav1.LabelSelector{
		"labels of its own": {MatchLabels: map[string]string{"own": "label"}},
		"expressions":       {MatchExpressions: expressions},
		"both":              {MatchLabels: map[string]string{"own": "label"}, MatchExpressions: expressions},
	} {
		for _, deployment := range []string{"console", "downloads", "other"} {
			got := shapedFor(t, manifest(deployment, func(d *appsv1.Deployment) {
				d.Spec.Selector = selector
				d.Spec.Template.Labels = map[string]string{"own": "label", "component": "downloads"}
				d.Spec.Template.Spec.Affinity = nil
			}), clusterOf(ha, ha))
			want := []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: "kubernetes.io/hostname"}}
			if diff := cmp.Diff(want, got.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
				t.Errorf("%s, selector with %s (-want +got):\n%s", deployment, name, diff)
			}
		}
	}
	for _, mode := range allModes {
		for name, d := range map[string]*appsv1.Deployment{
			"no Deployment":     nil,
			"no selector":       manifest("downloads", func(d *appsv1.Deployment) { d.Spec.Selector = nil }),
			"an empty selector": manifest("downloads", func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }),
		} {
			if got, err := console.ShapeDeployment(d, clusterOf(mode, mode)); !errors.Is(err, console.ErrDeployment) || got != nil {
				t.Errorf("%q, %s: %v, %v, want %v", mode, name, got, err, console.ErrDeployment)
			}
		}
	}
	start := manifest("console")
	shapedFor(t, start, clusterOf(ha, ha)).Spec.Template.Spec.Affinity.PodAntiAffinity.
		RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"] = "changed"
	if start.Spec.Selector.MatchLabels["app"] != "console" {
		t.Error("the shape shares the argument's labels")
	}
}

// The parts that can be had alone are those of the whole.
func TestPartsAreOfTheWhole(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, _ bool) {
		cluster := clusterOf(controlPlane, infrastructure)
		for _, name := range []string{"console", "downloads"} {
			whole := shapedFor(t, manifest(name), cluster)
			part, err := console.DeploymentStrategy(cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole.Spec.Strategy, part); diff != "" {
				t.Errorf("%s, %q, %q: strategy (-whole +part):\n%s", name, controlPlane, infrastructure, diff)
			}
			apart, err := console.DeploymentAntiAffinity(cluster, whole.Spec.Selector.MatchLabels)
			if err != nil {
				t.Fatal(err)
			}
			var want *corev1.PodAntiAffinity
			if affinity := whole.Spec.Template.Spec.Affinity; affinity != nil {
				want = affinity.PodAntiAffinity
			}
			if diff := cmp.Diff(want, apart); diff != "" || (apart == nil) != single {
				t.Errorf("%s, %q, %q: anti-affinity (-whole +part):\n%s", name, controlPlane, infrastructure, diff)
			}
		}
	})
}

// TestPodDisruptionBudget shows R-SNO-3: there is no budget over one pod.
func TestPodDisruptionBudget(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, _ bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			want := &policyv1.PodDisruptionBudget{
				TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: name},
				Spec: policyv1.PodDisruptionBudgetSpec{
					MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
					Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": component}},
					UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
				},
			}
			if single {
				want = nil
			}
			got, err := console.PodDisruptionBudget(name, clusterOf(controlPlane, infrastructure))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, control plane %q, infrastructure %q: %v (-want +got):\n%s", name, controlPlane, infrastructure, err, diff)
			}
		}
	})
	for _, mode := range allModes {
		if got, err := console.PodDisruptionBudget("consoel", clusterOf(mode, mode)); !errors.Is(err, console.ErrName) || got != nil {
			t.Errorf("%q, another name: %v, %v, want %v", mode, got, err, console.ErrName)
		}
	}
}
