// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/conformance/report"
)

func found(object, field, want string, got any, held bool) report.Evidence {
	return report.Evidence{Object: object, Field: field, Want: want, Got: fmt.Sprint(got), Held: held}
}

func missingObject(object string) report.Evidence {
	return found(object, "metadata.name", "the object exists", "it does not exist", false)
}

// eachOf is Check.Run of checks that evaluate Deployments one by one, all of which must exist.
func eachOf(workloads []types.NamespacedName, evaluate func(*State, *appsv1.Deployment) []report.Evidence) func(*Input) ([]report.Evidence, error) {
	return func(in *Input) ([]report.Evidence, error) {
		var evidence []report.Evidence
		for _, w := range workloads {
			d := in.State.Deployment(w.Namespace, w.Name)
			if d == nil {
				evidence = append(evidence, missingObject("Deployment "+w.Namespace+"/"+w.Name))
				continue
			}
			evidence = append(evidence, evaluate(in.State, d)...)
		}
		return evidence, nil
	}
}

// allAbsent returns a reason if none of the workloads exists: console is an optional capability.
func allAbsent(workloads ...types.NamespacedName) func(*State) string {
	return func(s *State) string {
		exists := slices.ContainsFunc(workloads, func(w types.NamespacedName) bool { return s.Deployment(w.Namespace, w.Name) != nil })
		return unless(exists, "none of its Deployments exists")
	}
}

// NameOf is the name of a Deployment in evidence.
func NameOf(d *appsv1.Deployment) string { return "Deployment " + d.Namespace + "/" + d.Name }

// Replicas are 1 if they are not set, as in the API's default.
func Replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func selects(selector *metav1.LabelSelector, on map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && selector != nil && s.Matches(labels.Set(on))
}

// Covers reports whether a budget selects the pods of a Deployment.
func Covers(budget *policyv1.PodDisruptionBudget, deployment *appsv1.Deployment) bool {
	return budget.Namespace == deployment.Namespace && selects(budget.Spec.Selector, deployment.Spec.Template.Labels)
}

// allowed returns how many of n pods a budget allows to be unavailable.
func allowed(budget *policyv1.PodDisruptionBudget, n int) int {
	switch spec := budget.Spec; {
	case spec.MaxUnavailable != nil:
		return max(0, min(n, scaled(*spec.MaxUnavailable, n, true)))
	case spec.MinAvailable != nil:
		return max(0, n-scaled(*spec.MinAvailable, n, true))
	default:
		return 0
	}
}

// scaled resolves percentages. Controllers round all up but maxUnavailable of a Deployment.
func scaled(value intstr.IntOrString, n int, up bool) int {
	result, err := intstr.GetScaledValueFromIntOrPercent(&value, n, up)
	if err != nil {
		return 0
	}
	return result
}

// PodReady reports whether a pod is ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// Unschedulable returns why the scheduler finds no node, or "".
func Unschedulable(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			first, _, _ := strings.Cut(condition.Message, ". ")
			return first
		}
	}
	return ""
}

// HostPorts returns the ports that pods of a template take on their nodes, sorted.
func HostPorts(pod *corev1.PodSpec) []string {
	var ports []string
	for _, container := range pod.Containers {
		for _, port := range container.Ports {
			number := port.HostPort
			if pod.HostNetwork {
				number = port.ContainerPort
			}
			if number == 0 {
				continue
			}
			protocol := port.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			ports = append(ports, fmt.Sprintf("%d-%s", number, protocol))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func pinnedDeployments(s *State) []*appsv1.Deployment {
	return where(s.Deployments, func(d *appsv1.Deployment) bool {
		return onControlPlane(d.Spec.Template.Spec.NodeSelector) && Replicas(d) > 0
	})
}

func toleration(object, field string, tolerations []corev1.Toleration, taints []corev1.Taint) []report.Evidence {
	var evidence []report.Evidence
	for _, taint := range taints {
		got, held := "not tolerated", tolerates(tolerations, taint)
		if held {
			got = "tolerated"
		}
		evidence = append(evidence, found(object, field+"["+taint.Key+"]", "tolerated", got, held))
	}
	return evidence
}

func toleratesAll(d *appsv1.Deployment, taints []corev1.Taint) []report.Evidence {
	return toleration(NameOf(d), "spec.template.spec.tolerations", d.Spec.Template.Spec.Tolerations, taints)
}

// separated requires that pods run on different nodes, by a rule or host ports, so that it is not a coincidence.
func separated(s *State, d *appsv1.Deployment) (rule, spread report.Evidence) {
	pod := &d.Spec.Template.Spec
	got := "nothing"
	if affinity := pod.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		for _, term := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if term.PodAffinityTerm.TopologyKey == corev1.LabelHostname {
				got = "preferred anti-affinity"
			}
		}
		for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == corev1.LabelHostname {
				got = "required anti-affinity"
			}
		}
	}
	if len(HostPorts(pod)) > 0 {
		got = "host ports"
	}
	rule = found(NameOf(d), "spec.template.spec, separation of pods", "anti-affinity by node, or host ports", got, got != "nothing")
	pods, nodes := s.PodsOf(d), map[string]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	spread = found("Pods of "+NameOf(d), "spec.nodeName", "different nodes", nodesOf(pods), len(pods) > 1 && len(nodes) == len(pods))
	return rule, spread
}

func nodesOf(pods []corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "no pods"
	}
	return strings.Join(names, ", ")
}

const versionManager = "cluster-version-operator"

// overridden reports whether the cluster-version-operator does not manage a Deployment.
func overridden(s *State, namespace, name string) bool {
	return s.ClusterVersion != nil && slices.ContainsFunc(s.ClusterVersion.Spec.Overrides, func(o configv1.ComponentOverride) bool {
		return o.Kind == "Deployment" && o.Namespace == namespace && o.Name == name && o.Unmanaged
	})
}
