// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/internal/fixture"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

// A Cluster that was not read must not count as highly available.
func TestClusterNotRead(t *testing.T) {
	for name, cluster := range map[string]topology.Cluster{
		"zero": {}, "no infrastructure": {ControlPlane: topology.ReadingOf(topologytest.SR)}, "no control plane": {Infrastructure: topology.ReadingOf(topologytest.SR)},
	} {
		for function, call := range map[string]func() (any, error){
			"Pool":                func() (any, error) { return console.Pool(cluster) },
			"ShapeDeployment":     func() (any, error) { return console.ShapeDeployment(fixture.Manifest("console"), cluster) },
			"PodDisruptionBudget": func() (any, error) { return console.PodDisruptionBudget("console", cluster) },
		} {
			if got, err := call(); !errors.Is(err, topology.ErrClusterNotRead) || !reflect.ValueOf(got).IsZero() {
				t.Errorf("%s, %s: %v, %v, want %v", function, name, got, err, topology.ErrClusterNotRead)
			}
		}
	}
}

// R-CON-1, R-CON-3, R-SNO-2: the shape for every pair of topologies.
func TestShapeDeployment(t *testing.T) {
	bare := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Tolerations = nil, nil
	}
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		cluster := fixture.ClusterOf(controlPlane, infrastructure)
		pool := topology.ControlPlanePool
		if onWorkers {
			pool = topology.WorkerPool
		}
		if got, err := console.Pool(cluster); err != nil || got != pool {
			t.Errorf("control plane %q, infrastructure %q: pool %s, %v, want %s", controlPlane, infrastructure, got, err, pool)
		}
		for _, name := range []string{"console", "downloads"} {
			want := fixture.Shaped(name)
			if !single {
				want.Spec.Replicas = ptr.To[int32](2)
				want.Spec.Strategy = fixture.Strategy(intstr.FromInt32(1), intstr.FromInt32(3))
				want.Spec.Template.Spec.Affinity = fixture.Manifest(name).Spec.Template.Spec.Affinity
			}
			selector, tolerations := map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{fixture.Role("master"), fixture.Role("control-plane")}
			if onWorkers {
				want.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
				selector, tolerations = nil, nil
			}
			for from, start := range map[string]*appsv1.Deployment{
				"the manifest": fixture.Manifest(name), "the shape of one node": fixture.Shaped(name), "no placement": fixture.Manifest(name, bare),
			} {
				before := start.DeepCopy()
				got := shapedFor(t, start, cluster)
				if diff := cmp.Diff(before, start); diff != "" {
					t.Fatalf("the argument was changed:\n%s", diff)
				}
				if again := shapedFor(t, got, cluster); !cmp.Equal(got, again) {
					t.Errorf("%s, control plane %q, infrastructure %q: shaping twice differs from once", name, controlPlane, infrastructure)
				}
				want := want.DeepCopy()
				if from == "no placement" {
					want.Spec.Template.Spec.NodeSelector, want.Spec.Template.Spec.Tolerations = selector, tolerations
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s from %s, control plane %q, infrastructure %q (-want +got):\n%s", name, from, controlPlane, infrastructure, diff)
				}
			}
		}
	})
}

func shapedFor(t testing.TB, d *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	t.Helper()
	got, err := console.ShapeDeployment(d, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestShapeDeploymentKeepsOtherFields(t *testing.T) {
	start := fixture.Manifest("downloads", func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"a": "b"}
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		pod := &d.Spec.Template.Spec
		pod.NodeSelector = map[string]string{"disk": "ssd", "node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	})
	for _, mode := range topologytest.AllModes {
		got := shapedFor(t, start, fixture.ClusterOf(mode, mode))
		keys := ""
		for _, toleration := range got.Spec.Template.Spec.Tolerations {
			keys += " " + toleration.Key
		}
		selector := map[string]string{"disk": "ssd", "node-role.kubernetes.io/master": ""}
		wantKeys := " node-role.kubernetes.io/master node.kubernetes.io/not-ready dedicated"
		if mode == topologytest.External {
			selector = map[string]string{"disk": "ssd"}
		}
		if diff := cmp.Diff(selector, got.Spec.Template.Spec.NodeSelector); diff != "" || keys != wantKeys || got.Annotations["a"] != "b" {
			t.Errorf("%q: tolerations%s, want%s; selector (-want +got):\n%s", mode, keys, wantKeys, diff)
		}
	}
}

// What the stock operator shapes for the topology stays as it is (U-CON-1, U-CON-2): another spelling would start a
// rollout on each cluster that is updated.
func TestShapeDeploymentKeepsTheOperators(t *testing.T) {
	stock := func(name string, replicas int32, rollout appsv1.DeploymentStrategy, affinity *corev1.Affinity, roles ...string) *appsv1.Deployment {
		return fixture.Manifest(name, func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Strategy, d.Spec.Template.Spec.Affinity = &replicas, rollout, affinity
			for _, role := range roles {
				d.Spec.Template.Spec.NodeSelector["node-role.kubernetes.io/"+role] = ""
			}
		})
	}
	apart := func(key string, values ...string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values},
			}},
			TopologyKey: "kubernetes.io/hostname",
		}}}}
	}
	quarter := intstr.FromString("25%")
	one, several := fixture.Strategy(quarter, quarter), fixture.Strategy(intstr.FromInt32(1), intstr.FromInt32(3))
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			roles := []string{"master"}
			if onWorkers {
				roles = nil
			}
			operators := stock(name, 2, several, apart("component", component), roles...)
			if single {
				operators = stock(name, 1, one, &corev1.Affinity{}, roles...)
			}
			if diff := cmp.Diff(operators, shapedFor(t, operators, fixture.ClusterOf(controlPlane, infrastructure))); diff != "" {
				t.Errorf("%s, control plane %q, infrastructure %q (-operator's +shaped):\n%s", name, controlPlane, infrastructure, diff)
			}
		}
	})
	for name, test := range map[string]struct{ affinity, want *corev1.Affinity }{
		"console and downloads apart from each other": {apart("app", "console"), fixture.Manifest("console").Spec.Template.Spec.Affinity},
		"by both components":                          {apart("component", "ui", "downloads"), fixture.Manifest("console").Spec.Template.Spec.Affinity},
		"by either of two of its own":                 {apart("component", "ui", "web"), apart("component", "ui", "web")},
	} {
		got := shapedFor(t, stock("console", 2, several, test.affinity, "master"), fixture.ClusterOf(topologytest.HA, topologytest.HA)).Spec.Template.Spec.Affinity
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without the Deployment's selector, console and downloads would be separated from each other, or nothing.
func TestShapeDeploymentSelector(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"own": "label"}, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "component", Operator: metav1.LabelSelectorOpIn, Values: []string{"downloads"}}}}
	got := shapedFor(t, fixture.Manifest("other", func(d *appsv1.Deployment) {
		d.Spec.Selector, d.Spec.Template.Labels = selector, map[string]string{"own": "label", "component": "downloads"}
		d.Spec.Template.Spec.Affinity = nil
	}), fixture.ClusterOf(topologytest.HA, topologytest.HA)).Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if diff := cmp.Diff([]corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: "kubernetes.io/hostname"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].LabelSelector == selector {
		t.Error("the shape shares the argument's selector")
	}
	for name, d := range map[string]*appsv1.Deployment{
		"no Deployment":     nil,
		"no selector":       fixture.Manifest("downloads", func(d *appsv1.Deployment) { d.Spec.Selector = nil }),
		"an empty selector": fixture.Manifest("downloads", func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }),
	} {
		for _, mode := range topologytest.AllModes {
			if got, err := console.ShapeDeployment(d, fixture.ClusterOf(mode, mode)); !errors.Is(err, console.ErrDeployment) || got != nil {
				t.Errorf("%q, %s: %v, %v, want %v", mode, name, got, err, console.ErrDeployment)
			}
		}
	}
}

// R-SNO-3: there is no budget for one pod. topology/workload tests the other fields.
func TestPodDisruptionBudget(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, _ bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			got, err := console.PodDisruptionBudget(name, fixture.ClusterOf(controlPlane, infrastructure))
			labels := map[string]string{"app": "console", "component": component}
			if (got == nil) != single || err != nil || got != nil && (got.Namespace+"/"+got.Name != "openshift-console/"+name ||
				!cmp.Equal(got.Spec.Selector.MatchLabels, labels)) {
				t.Errorf("%s, control plane %q, infrastructure %q: %+v, %v", name, controlPlane, infrastructure, got, err)
			}
		}
	})
	if got, err := console.PodDisruptionBudget("consoel", fixture.ClusterOf(topologytest.HA, topologytest.HA)); !errors.Is(err, console.ErrName) || got != nil {
		t.Errorf("another name: %v, %v, want %v", got, err, console.ErrName)
	}
}
