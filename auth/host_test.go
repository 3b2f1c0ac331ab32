// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

// R-AUTH-3, and R-AUTH-1 with one node.
func TestReplicas(t *testing.T) {
	byInfrastructure := map[configv1.TopologyMode]int32{topologytest.SR: 1, topologytest.HA: 2, topologytest.Arbiter: 2, topologytest.Dual: 2, topologytest.External: 2, topologytest.Empty: 2, topologytest.Unknown: 2}
	for _, nodes := range []int32{-1, 0, 1, 2, 3, 5} {
		for _, infrastructure := range topologytest.AllModes {
			for mode, want := range map[configv1.TopologyMode]int32{
				topologytest.SR: 1, topologytest.Dual: 2, topologytest.Arbiter: 2, topologytest.HA: nodes, topologytest.Empty: nodes, topologytest.Unknown: nodes, topologytest.External: byInfrastructure[infrastructure],
			} {
				var wantErr error
				if want < 1 {
					want, wantErr = 0, auth.ErrNoNodes
				}
				if got, err := auth.Replicas(fixture.ClusterOf(mode, infrastructure), nodes); got != want || !errors.Is(err, wantErr) {
					t.Errorf("control plane %q, infrastructure %q, %d nodes: %d, %v, want %d, %v", mode, infrastructure, nodes, got, err, want, wantErr)
				}
			}
		}
	}
}

// A Cluster that was not read must not count as highly available.
func TestClusterNotRead(t *testing.T) {
	for name, cluster := range map[string]topology.Cluster{
		"zero": {}, "no infrastructure": {ControlPlane: topology.ReadingOf(topologytest.SR)}, "no control plane": {Infrastructure: topology.ReadingOf(topologytest.SR)},
	} {
		for function, call := range map[string]func() (any, error){
			"Replicas":                          func() (any, error) { return auth.Replicas(cluster, 3) },
			"ShapeOAuthServer":                  func() (any, error) { return auth.ShapeOAuthServer(fixture.Server(), cluster, 3) },
			"ShapeOAuthAPIServer":               func() (any, error) { return auth.ShapeOAuthAPIServer(fixture.APIServer(), cluster, 3) },
			"OAuthServerPodDisruptionBudget":    func() (any, error) { return auth.OAuthServerPodDisruptionBudget(cluster, nil) },
			"OAuthAPIServerPodDisruptionBudget": func() (any, error) { return auth.OAuthAPIServerPodDisruptionBudget(cluster, nil) },
			"MinimumControlPlaneNodes":          func() (any, error) { return auth.MinimumControlPlaneNodes(cluster, nil) },
		} {
			if got, err := call(); !errors.Is(err, topology.ErrClusterNotRead) || !reflect.ValueOf(got).IsZero() {
				t.Errorf("%s, %s: %v, %v, want %v", function, name, got, err, topology.ErrClusterNotRead)
			}
		}
	}
}

type shape struct {
	Replicas, MaxUnavailable, MaxSurge int
	AntiAffinity                       string // "", within a "revision", or between "all"
}

func shapeOf(t testing.TB, d *appsv1.Deployment, labels map[string]string) shape {
	t.Helper()
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Fatalf("strategy is %q", d.Spec.Strategy.Type)
	}
	update := d.Spec.Strategy.RollingUpdate
	s := shape{Replicas: int(*d.Spec.Replicas), MaxUnavailable: update.MaxUnavailable.IntValue(), MaxSurge: update.MaxSurge.IntValue()}
	affinity := d.Spec.Template.Spec.Affinity
	switch {
	case affinity == nil:
	case cmp.Equal(affinity, antiAffinity(term(labels, "pod-template-hash"))):
		s.AntiAffinity = "revision"
	case cmp.Equal(affinity, antiAffinity(term(labels))):
		s.AntiAffinity = "all"
	default:
		s.AntiAffinity = fixture.Text(t, affinity)
	}
	return s
}

// A rollout finishes on the nodes of each row, and no node has two writers of an audit log.
func TestShapeRollout(t *testing.T) {
	for name, test := range map[string]struct {
		controlPlane, infrastructure configv1.TopologyMode
		nodes                        int32
		server, apiServer            shape
	}{
		"single":                            {topologytest.SR, topologytest.SR, 1, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single with workers":               {topologytest.SR, topologytest.HA, 1, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single, nodes not counted":         {topologytest.SR, topologytest.SR, 0, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single, still three nodes":         {topologytest.SR, topologytest.SR, 3, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"two nodes":                         {topologytest.Dual, topologytest.HA, 2, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"two nodes, one lost":               {topologytest.Dual, topologytest.HA, 1, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"arbiter":                           {topologytest.Arbiter, topologytest.HA, 2, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"highly available":                  {topologytest.HA, topologytest.HA, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"highly available, one node so far": {topologytest.HA, topologytest.HA, 1, shape{1, 1, 1, "revision"}, shape{1, 1, 0, "all"}},
		"highly available, five nodes":      {topologytest.HA, topologytest.HA, 5, shape{5, 4, 5, "revision"}, shape{5, 1, 0, "all"}},
		"unknown":                           {topologytest.Unknown, topologytest.Unknown, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"external":                          {topologytest.External, topologytest.HA, 0, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"external, one worker":              {topologytest.External, topologytest.SR, 0, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
	} {
		cluster := fixture.ClusterOf(test.controlPlane, test.infrastructure)
		role, tolerations := "node-role.kubernetes.io/master", []corev1.Toleration{fixture.Unreachable, master, controlPlane}
		if test.controlPlane == topologytest.External {
			role, tolerations = "node-role.kubernetes.io/worker", tolerations[:1]
		}
		selector := map[string]string{"kubernetes.io/os": "linux", role: ""}
		s := must(auth.ShapeOAuthServer(fixture.Server(), cluster, test.nodes))
		a := must(auth.ShapeOAuthAPIServer(fixture.APIServer(), cluster, test.nodes))
		diff := cmp.Diff(test.server, shapeOf(t, s, fixture.ServerLabels)) + cmp.Diff(test.apiServer, shapeOf(t, a, fixture.APIServerLabels))
		for _, d := range []*appsv1.Deployment{s, a} {
			diff += cmp.Diff(selector, d.Spec.Template.Spec.NodeSelector) + cmp.Diff(tolerations, d.Spec.Template.Spec.Tolerations)
		}
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Shaping is idempotent, and changes neither its argument nor other fields.
func TestShapeIsPure(t *testing.T) {
	full := func(d *appsv1.Deployment) {
		d.Labels, d.Spec.MinReadySeconds, d.Status.ReadyReplicas = map[string]string{"l": "v"}, 30, 1
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Template.Spec.PriorityClassName = "system-node-critical"
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}}
		d.Spec.Template.Spec.Affinity = antiAffinity(term(map[string]string{"app": "etcd"}))
	}
	for target, test := range map[string]struct {
		from  *appsv1.Deployment
		shape func(*appsv1.Deployment, topology.Cluster, int32) (*appsv1.Deployment, error)
	}{
		"oauth-openshift": {fixture.Server(full), auth.ShapeOAuthServer},
		"oauth-apiserver": {fixture.APIServer(full), auth.ShapeOAuthAPIServer},
	} {
		before := test.from.DeepCopy()
		for _, mode := range topologytest.AllModes {
			cluster := fixture.ClusterOf(mode, topologytest.SR)
			shaped := must(test.shape(test.from, cluster, 3))
			twice, back := must(test.shape(shaped, cluster, 3)), must(test.shape(must(test.shape(shaped, fixture.ClusterOf(topologytest.HA, topologytest.HA), 3)), cluster, 3))
			if diff := cmp.Diff(shaped, twice); diff != "" {
				t.Errorf("%s, %q, twice (-want +got):\n%s", target, mode, diff)
			}
			if diff := cmp.Diff(shaped, back); mode != topologytest.External && diff != "" {
				t.Errorf("%s, %q, after HighlyAvailable (-want +got):\n%s", target, mode, diff)
			}
			pod, was := &twice.Spec.Template.Spec, before.Spec.Template.Spec
			twice.Spec.Replicas, twice.Spec.Strategy = before.Spec.Replicas, before.Spec.Strategy
			pod.NodeSelector, pod.Tolerations, pod.Affinity = was.NodeSelector, was.Tolerations, was.Affinity
			if diff := cmp.Diff(before, twice); diff != "" {
				t.Errorf("%s, %q: other fields have changed (-want +got):\n%s", target, mode, diff)
			}
			shaped.Spec.Selector.MatchLabels["app"] = "changed"
			if strings.Contains(fixture.Text(t, shaped.Spec.Template.Spec.Affinity), "changed") {
				t.Errorf("%s, %q: the anti-affinity shares the selector's labels", target, mode)
			}
			if diff := cmp.Diff(before, test.from); diff != "" {
				t.Fatalf("%s, %q: the argument was changed:\n%s", target, mode, diff)
			}
		}
	}
}

// topology/workload tests the other fields.
func TestPodDisruptionBudgets(t *testing.T) {
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range []configv1.TopologyMode{topologytest.SR, topologytest.HA} {
			cluster := fixture.ClusterOf(controlPlane, infrastructure)
			for name, got := range map[string]*policyv1.PodDisruptionBudget{
				"openshift-authentication/oauth-openshift-pdb":  must(auth.OAuthServerPodDisruptionBudget(cluster, fixture.ServerLabels)),
				"openshift-oauth-apiserver/oauth-apiserver-pdb": must(auth.OAuthAPIServerPodDisruptionBudget(cluster, fixture.ServerLabels)),
			} {
				single := controlPlane == topologytest.SR || (controlPlane == topologytest.External && infrastructure == topologytest.SR)
				if (got == nil) != single || got != nil && (got.Namespace+"/"+got.Name != name || !cmp.Equal(got.Spec.Selector.MatchLabels, fixture.ServerLabels)) {
					t.Errorf("%q, %q, %s: %+v", controlPlane, infrastructure, name, got)
				}
			}
		}
	}
}
