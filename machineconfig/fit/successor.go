package fit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// checkSuccessors: of every evicted pod it must be known who makes it again, that its successor needs no more than it does, and
// that it is placed by rules that the rest of the check follows.
func (s *survey) checkSuccessors() *Verdict {
	for _, c := range s.comers {
		if !c.evicted {
			continue
		}
		template, why := s.template(c.pod)
		if why == "" {
			why = differs(c.pod, template)
		}
		if why != "" {
			v := doubt(NoSuccessor, "pod %s/%s: %s", c.pod.Namespace, c.pod.Name, why)
			return &v
		}
		for _, spec := range []*corev1.PodSpec{&c.pod.Spec, &template.Spec} {
			if volume := tied(spec); volume != "" {
				v := doubt(Volumes, "pod %s/%s: volume %s", c.pod.Namespace, c.pod.Name, volume)
				return &v
			}
			if why := unfollowed(spec); why != "" {
				v := doubt(NotFollowed, "pod %s/%s: %s", c.pod.Namespace, c.pod.Name, why)
				return &v
			}
		}
	}
	return nil
}

// template is what the pod's successor is made from; or the reason why that is not known.
func (s *survey) template(pod *corev1.Pod) (*corev1.PodTemplateSpec, string) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil, "nobody makes it again"
	}
	switch owner.APIVersion + " " + owner.Kind {
	case "apps/v1 ReplicaSet":
		i := slices.IndexFunc(s.ReplicaSets, func(set appsv1.ReplicaSet) bool { return set.UID == owner.UID })
		if i >= 0 {
			return &s.ReplicaSets[i].Spec.Template, ""
		}
	case "apps/v1 StatefulSet":
		i := slices.IndexFunc(s.StatefulSets, func(set appsv1.StatefulSet) bool { return set.UID == owner.UID })
		if i >= 0 {
			set := &s.StatefulSets[i]
			if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision != pod.Labels[appsv1.StatefulSetRevisionLabel] {
				return nil, "its stateful set is being updated"
			}
			return &set.Spec.Template, ""
		}
	default:
		return nil, "it is not known how a " + owner.Kind + " makes it again"
	}
	return nil, fmt.Sprintf("its %s %s is not there", owner.Kind, owner.Name)
}

// differs tells what of a template is not as in the pod that was made from it, as far as it decides where a pod may run. What
// admission adds to every pod is no difference.
func differs(pod *corev1.Pod, template *corev1.PodTemplateSpec) string {
	has := needed(pod)
	for name, amount := range needed(&corev1.Pod{Spec: template.Spec}) {
		if amount > has[name] {
			return "its successor requests more " + string(name)
		}
	}
	missing := func(of, in map[string]string) bool {
		for key, value := range of {
			if have, ok := in[key]; !ok || have != value {
				return true
			}
		}
		return false
	}
	added := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !slices.ContainsFunc(template.Spec.Tolerations, func(of corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(t, of)
		})
	})
	switch {
	case missing(template.Labels, pod.Labels):
		return "its labels are not those of its template"
	case missing(template.Spec.NodeSelector, pod.Spec.NodeSelector):
		return "its node selector is not that of its template"
	case !equality.Semantic.DeepEqual(template.Spec.Affinity, pod.Spec.Affinity):
		return "its affinity is not that of its template"
	case added:
		return "it tolerates what its template does not"
	case !equality.Semantic.DeepEqual(hostPorts(&template.Spec), hostPorts(&pod.Spec)):
		return "its host ports are not those of its template"
	case template.Spec.NodeName != "":
		return "its template names the node"
	}
	return ""
}

// tied is the name of a volume that is not known to be the same wherever the pod runs.
func tied(spec *corev1.PodSpec) string {
	for _, volume := range spec.Volumes {
		if volume.ConfigMap == nil && volume.Secret == nil && volume.Projected == nil && volume.DownwardAPI == nil && volume.EmptyDir == nil {
			return volume.Name
		}
	}
	return ""
}

// unfollowed is a rule of scheduling that the check does not follow.
func unfollowed(spec *corev1.PodSpec) string {
	spreads := slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable != corev1.ScheduleAnyway
	})
	switch {
	case spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName:
		return "it has a scheduler of its own"
	case len(spec.SchedulingGates) > 0:
		return "it has scheduling gates"
	case len(spec.ResourceClaims) > 0:
		return "it claims devices"
	case spreads:
		return "it must be spread over a topology"
	case corev1helpers.TolerationsTolerateTaint(logr.Discard(), spec.Tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, true):
		return "it tolerates a cordon, and may come back to the node that it is evicted from"
	}
	return ""
}
