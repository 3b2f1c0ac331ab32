// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

const (
	// portLabel contains the host ports of a pod.
	portLabel          = "sno.solonode.github.io/conformance-host-ports"
	revisionAnnotation = "sno.solonode.github.io/conformance-revision"
)

// shape is what the scheduler and the controllers use of a Deployment and its budgets. Images, volumes, probes and
// requests are left out, so that copies fit next to the original on a full node. So is minReadySeconds, which only
// takes time.
type shape struct {
	deployment *appsv1.Deployment
	budgets    []policyv1.PodDisruptionBudget
}

// copyResources sets explicit values: a quota rejects pods without them, and the defaults of a LimitRange may not fit.
func copyResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// copyNamespace returns a namespace with restricted pod security. It disables the cluster's default node selector,
// because copies have their own.
func copyNamespace(run string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespacePrefix,
		Labels: map[string]string{
			cluster.RunLabel:                                 run,
			"pod-security.kubernetes.io/enforce":             "restricted",
			"pod-security.kubernetes.io/audit":               "restricted",
			"pod-security.kubernetes.io/warn":                "restricted",
			"security.openshift.io/scc.podSecurityLabelSync": "false",
		},
		Annotations: map[string]string{"openshift.io/node-selector": ""},
	}}
}

// shapeOf copies a Deployment so that it can run in any namespace. Required anti-affinity between all pods with the
// same host port replaces the port: scheduling is the same, without privileges and without a conflict with the
// original.
func shapeOf(source *appsv1.Deployment, budgets []policyv1.PodDisruptionBudget, runs program, run string) shape {
	from := &source.Spec.Template.Spec
	labels := maps.Clone(source.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[cluster.RunLabel] = run
	pod := corev1.PodSpec{
		NodeSelector:                  maps.Clone(from.NodeSelector),
		Affinity:                      from.Affinity.DeepCopy(),
		Tolerations:                   slices.Clone(from.Tolerations),
		TopologySpreadConstraints:     slices.Clone(from.TopologySpreadConstraints),
		PriorityClassName:             from.PriorityClassName,
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		AutomountServiceAccountToken:  ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "copy", Image: runs.image, Command: runs.command, Resources: copyResources(),
			// There may be no registry, so images on the node are used whatever their tag is.
			ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
	if ports := catalogue.HostPorts(from); len(ports) > 0 {
		labels[portLabel] = strings.Join(ports, "_")
		separateByPorts(&pod, labels[portLabel])
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: source.Name, Labels: map[string]string{cluster.RunLabel: run}},
		Spec: appsv1.DeploymentSpec{
			Replicas: source.Spec.Replicas,
			Selector: source.Spec.Selector.DeepCopy(),
			Strategy: *source.Spec.Strategy.DeepCopy(),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
	var copied []policyv1.PodDisruptionBudget
	for i := range budgets {
		if catalogue.Covers(&budgets[i], source) {
			budget := policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: budgets[i].Name, Labels: map[string]string{cluster.RunLabel: run}}, Spec: *budgets[i].Spec.DeepCopy(),
			}
			copied = append(copied, budget)
		}
	}
	return shape{deployment: deployment, budgets: copied}
}

func separateByPorts(pod *corev1.PodSpec, ports string) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.PodAntiAffinity == nil {
		pod.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	anti := pod.Affinity.PodAntiAffinity
	anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{portLabel: ports}}, TopologyKey: corev1.LabelHostname,
	})
}

// CopyImage is the image of copies if none is configured and no pod runs a suitable one.
const CopyImage = "registry.k8s.io/pause:3.10"

// program is the image of copies, and a command if its own may end.
type program struct {
	image   string
	command []string
	// from is the origin of the image, for the progress output.
	from string
}

const sleepForever = "exec sleep 2147483647"

// programOf returns the configured image, or one with a shell that runs on most nodes already, because a disconnected
// cluster can pull no other.
func programOf(configured string, pods []corev1.Pod) program {
	if configured != "" {
		return program{image: configured, from: "as configured"}
	}
	type candidate struct{ image, shell string }
	nodes, from := map[candidate]map[string]bool{}, map[candidate]string{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || !catalogue.PodReady(pod) || pod.Spec.NodeName == "" {
			continue
		}
		for _, container := range pod.Spec.Containers {
			if len(container.Command) == 0 || !isShell(container.Command[0]) {
				continue
			}
			c := candidate{container.Image, container.Command[0]}
			if nodes[c] == nil {
				nodes[c], from[c] = map[string]bool{}, pod.Namespace+"/"+pod.Name
			}
			nodes[c][pod.Spec.NodeName] = true
		}
	}
	if len(nodes) == 0 {
		return program{image: CopyImage, from: "because no pod of OpenShift runs a shell"}
	}
	best := slices.MinFunc(slices.Collect(maps.Keys(nodes)), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(a.image, b.image), cmp.Compare(a.shell, b.shell))
	})
	return program{image: best.image, command: []string{best.shell, "-c", sleepForever}, from: "which pod " + from[best] + " runs too"}
}

func isShell(command string) bool {
	return slices.Contains([]string{"sh", "bash"}, path.Base(command))
}

// imageProblem returns why the image of a copy does not run, or "". The copied Deployment is not the cause.
func imageProblem(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return fmt.Sprintf("image %s cannot be pulled (%s): choose another one with --image", status.Image, waiting.Reason)
		case "CrashLoopBackOff", "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
			return fmt.Sprintf("image %s does not keep running (%s): choose another one with --image", status.Image, waiting.Reason)
		}
	}
	return ""
}
