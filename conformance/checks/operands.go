// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// Checks of console and auth, whose Deployments depend on the same topology.

func operandsSingle(s *State) string {
	if !single(s.operandsMode()) {
		return "the control plane is not SingleReplica"
	}
	return ""
}

func operandsSeveral(s *State) string {
	if single(s.operandsMode()) {
		return "the control plane is SingleReplica"
	}
	return ""
}

// allAbsent returns a reason if none of the workloads exists: console is an optional capability.
func allAbsent(workloads []workload) func(*State) string {
	return func(s *State) string {
		for _, w := range workloads {
			if s.Deployment(w.namespace, w.name) != nil {
				return ""
			}
		}
		return "none of its Deployments exists"
	}
}

func eachOf(workloads []workload, evaluate func(*State, *appsv1.Deployment) []report.Evidence) func(context.Context, *Input) ([]report.Evidence, error) {
	return func(_ context.Context, in *Input) ([]report.Evidence, error) {
		var evidence []report.Evidence
		for _, w := range workloads {
			d := in.State.Deployment(w.namespace, w.name)
			if d == nil {
				evidence = append(evidence, missingObject("Deployment "+w.namespace+"/"+w.name)...)
				continue
			}
			evidence = append(evidence, evaluate(in.State, d)...)
		}
		return evidence, nil
	}
}

func oneReplica(id, module string, requirement Requirement, w workload) Check {
	all := []workload{w}
	return Check{
		ID: id, Title: "The Deployment " + w.title() + " has a single replica, and is available, on a single control-plane node", Module: module, Requirement: requirement, Level: Core, Tier: Static,
		NotApplicable: firstReason(allAbsent(all), operandsSingle), Topologies: []string{"SingleReplica", "External"},
		Run: eachOf(all, func(_ *State, d *appsv1.Deployment) []report.Evidence {
			return []report.Evidence{
				found(nameOf(d), "spec.replicas", "1", replicas(d), replicas(d) == 1),
				found(nameOf(d), "status.availableReplicas", "1", d.Status.AvailableReplicas, d.Status.AvailableReplicas == 1),
			}
		}),
		Controls: []Control{
			{Name: "two replicas", Change: onDeployment(w.namespace, w.name, setReplicas(2))},
			{Name: "no available replica", Change: onDeployment(w.namespace, w.name, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })},
			{Name: "an annotation", MustPass: true, Change: onDeployment(w.namespace, w.name, annotate)},
		},
	}
}

func severalReplicas(id, module string, requirement Requirement, w workload) Check {
	all := []workload{w}
	return Check{
		ID: id, Title: "The Deployment " + w.title() + " has several replicas, on different nodes, where the control plane is highly available", Module: module, Requirement: requirement, Level: Core,
		Tier: Static, NotApplicable: firstReason(allAbsent(all), operandsSeveral),
		Topologies: []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "External"},
		Run: eachOf(all, func(s *State, d *appsv1.Deployment) []report.Evidence {
			return append([]report.Evidence{
				found(nameOf(d), "spec.replicas", "at least 2", replicas(d), replicas(d) >= 2),
				found(nameOf(d), "status.availableReplicas", "at least 2", d.Status.AvailableReplicas, d.Status.AvailableReplicas >= 2),
				separation(d),
			}, spread(s, d)...)
		}),
		Controls: []Control{
			{Name: "one replica", Change: onDeployment(w.namespace, w.name, setReplicas(1))},
			{Name: "no rule for different nodes", Change: onDeployment(w.namespace, w.name, removeSeparation)},
			{Name: "all pods on one node", Change: movePodsToOneNode(w.namespace, w.name)},
			{Name: "an annotation", MustPass: true, Change: onDeployment(w.namespace, w.name, annotate)},
		},
	}
}

// operandWithin accepts control-plane nodes, or any node if nothing pins the Deployment.
func operandWithin(s *State, d *appsv1.Deployment, name string) bool {
	node := s.node(name)
	if node == nil {
		return false
	}
	return !pinned(d.Spec.Template.Spec.NodeSelector) || isControlPlane(node)
}

// betweenPods reports whether a rule about other pods exists. Empty rules, which a release of fields leaves, do not
// count.
func betweenPods(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	apart, together := ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{}), ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{})
	return len(apart.RequiredDuringSchedulingIgnoredDuringExecution)+len(apart.PreferredDuringSchedulingIgnoredDuringExecution)+
		len(together.RequiredDuringSchedulingIgnoredDuringExecution)+len(together.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}

func preferSeparation(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: ownPods(d)}},
	}}
}

func keepTogether(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ownPods(d)}}}
}

func ownPods(d *appsv1.Deployment) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels}, TopologyKey: hostnameLabel}
}

const (
	moduleConsole    = "console"
	consoleNamespace = "openshift-console"
)

func consoles() []workload {
	return []workload{{consoleNamespace, "console"}, {consoleNamespace, "downloads"}}
}

func consoleChecks() []Check {
	one := Requirement{"R-CON-1", "console and downloads have one replica and no affinity rules on a single control-plane node"}
	two := Requirement{"R-CON-3", "console and downloads have two replicas on different nodes on other control planes"}
	managed := Requirement{"R-CON-2", "the console operator manages the downloads Deployment"}
	console, downloads := consoles()[0], consoles()[1]
	checks := []Check{
		oneReplica("SNO-CON-001", moduleConsole, one, console),
		oneReplica("SNO-CON-002", moduleConsole, one, downloads),
		{
			ID: "SNO-CON-003", Title: "Console and downloads have no affinity between pods on a single control-plane node", Module: moduleConsole, Requirement: one, Level: Core, Tier: Static,
			Topologies: []string{"SingleReplica", "External"}, NotApplicable: firstReason(allAbsent(consoles()), operandsSingle),
			Run: eachOf(consoles(), func(_ *State, d *appsv1.Deployment) []report.Evidence {
				got := "none"
				if betweenPods(d.Spec.Template.Spec.Affinity) {
					got = "rules about pods"
				}
				return []report.Evidence{found(nameOf(d), "spec.template.spec.affinity", "none", got, got == "none")}
			}),
			Controls: []Control{
				{Name: "required anti-affinity of console", Change: onDeployment(consoleNamespace, "console", deadlock)},
				{Name: "required anti-affinity of downloads", Change: onDeployment(consoleNamespace, "downloads", deadlock)},
				{Name: "a rule about nodes", MustPass: true, Change: onDeployment(consoleNamespace, "console", func(d *appsv1.Deployment) {
					keepOffControlPlane(d)
				})},
				{Name: "empty rules of downloads", MustPass: true, Change: onDeployment(consoleNamespace, "downloads", func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, PodAffinity: &corev1.PodAffinity{}}
				})},
				{Name: "preferred anti-affinity of downloads", Change: onDeployment(consoleNamespace, "downloads", preferSeparation)},
				{Name: "required affinity of downloads", Change: onDeployment(consoleNamespace, "downloads", keepTogether)},
			},
		},
		severalReplicas("SNO-CON-004", moduleConsole, two, console),
		severalReplicas("SNO-CON-005", moduleConsole, two, downloads),
		{
			ID: "SNO-CON-006", Title: "The cluster-version-operator does not manage the Deployment downloads", Module: moduleConsole, Requirement: managed, Level: Core, Tier: Static,
			Topologies: []string{"SingleReplica", "External"}, NotApplicable: firstReason(allAbsent(consoles()), operandsSingle),
			Run:      eachOf([]workload{downloads}, unmanagedByVersion),
			Controls: versionControls(downloads),
		},
	}
	return slices.Concat(checks, copyChecks(moduleConsole, "CON", 7, one, consoles(), operandWithin), []Check{topologyChangeCheck("SNO-CON-010", moduleConsole)})
}

const versionManager = "cluster-version-operator"

// unmanagedByVersion requires that the cluster-version-operator does not write the Deployment, or that its override is
// unmanaged.
func unmanagedByVersion(s *State, d *appsv1.Deployment) []report.Evidence {
	unmanaged := overridden(s, "Deployment", d.Namespace, d.Name)
	manager := "not " + versionManager
	for _, entry := range d.ManagedFields {
		if entry.Manager == versionManager && entry.Subresource == "" {
			manager = versionManager
		}
	}
	got := fmt.Sprintf("written by %s, unmanaged in spec.overrides: %t", manager, unmanaged)
	return []report.Evidence{found(nameOf(d), "metadata.managedFields", "not written by "+versionManager+", or unmanaged in spec.overrides", got, unmanaged || manager != versionManager)}
}

func overridden(s *State, kind, namespace, name string) bool {
	if s.ClusterVersion == nil {
		return false
	}
	for _, o := range s.ClusterVersion.Spec.Overrides {
		if o.Kind == kind && o.Namespace == namespace && o.Name == name {
			return o.Unmanaged
		}
	}
	return false
}

func versionControls(w workload) []Control {
	return []Control{
		{Name: "the " + versionManager + " writes it", Change: func(in *Input) bool {
			d := in.State.Deployment(w.namespace, w.name)
			if d == nil || in.State.ClusterVersion == nil {
				return false
			}
			writtenByVersion(d)
			in.State.ClusterVersion.Spec.Overrides = nil
			return true
		}},
		{Name: "an annotation", MustPass: true, Change: onDeployment(w.namespace, w.name, annotate)},
	}
}

const (
	moduleAuth  = "auth"
	overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
)

const apiServerName = "apiserver"

func oauths() []workload {
	return []workload{{"openshift-authentication", "oauth-openshift"}, {"openshift-oauth-apiserver", apiServerName}}
}

func authChecks() []Check {
	one := Requirement{"R-AUTH-2", "health checks of both OAuth servers accept a single replica"}
	many := Requirement{"R-AUTH-3", "the OAuth servers have a pod on each control-plane node"}
	checks := []Check{
		oneReplica("SNO-AUT-001", moduleAuth, one, oauths()[0]),
		oneReplica("SNO-AUT-002", moduleAuth, one, oauths()[1]),
		{
			ID: "SNO-AUT-003", Title: "No unsupported override stands in for the topology", Module: moduleAuth,
			Requirement: Requirement{"R-AUTH-1", "one node is enough because of the topology, not of an unsupported override"},
			Level:       Core, Tier: Static, NotApplicable: overrideApplies, Run: func(_ context.Context, in *Input) ([]report.Evidence, error) {
				set := string(in.State.Authentication.Spec.UnsupportedConfigOverrides.Raw)
				got := "not set"
				if containsKey(set, overrideKey) {
					got = "set"
				}
				return []report.Evidence{found("Authentication cluster", "spec.unsupportedConfigOverrides."+overrideKey, "not set", got, got == "not set")}, nil
			},
			Controls: []Control{
				{Name: "the override is set", Change: func(in *Input) bool {
					in.State.Authentication.Spec.UnsupportedConfigOverrides.Raw = []byte(`{"` + overrideKey + `":true}`)
					return true
				}},
				{Name: "another override is set", MustPass: true, Change: func(in *Input) bool {
					in.State.Authentication.Spec.UnsupportedConfigOverrides.Raw = []byte(`{"example":true}`)
					return true
				}},
			},
		},
		severalReplicas("SNO-AUT-004", moduleAuth, many, oauths()[0]),
		severalReplicas("SNO-AUT-005", moduleAuth, many, oauths()[1]),
	}
	return slices.Concat(checks, copyChecks(moduleAuth, "AUT", 6, one, oauths(), operandWithin), []Check{topologyChangeCheck("SNO-AUT-009", moduleAuth)})
}

// overrideApplies excludes releases that do not evaluate the topology: they need the override.
func overrideApplies(s *State) string {
	if s.Authentication == nil {
		return "the operator's Authentication does not exist"
	}
	if s.ClusterVersion != nil && beforeTopologies(s.ClusterVersion.Status.Desired.Version) {
		return "the release does not evaluate the topology"
	}
	return ""
}
