package stable

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// platform begins the names of the namespaces in which OpenShift's own pods run.
const platform = "openshift-"

// notSeen is what a controller of Kubernetes says by an old observedGeneration.
const notSeen = "its latest change has not been seen yet"

// rollouts goes by the rules of kubectl rollout status. Its code is not used: it would bring in all of kubectl describe, and calls what is
// only updated when a pod is deleted an error.
func (r *Report) rollouts(s *State) {
	for i := range s.Deployments {
		d := &s.Deployments[i]
		r.rollout(kindDeployment, d, deployment(d), d.Generation, d.Annotations[revision], deploymentMarks(d))
	}
	for i := range s.DaemonSets {
		d := &s.DaemonSets[i]
		r.rollout(kindDaemonSet, d, daemonSet(d), d.Generation, d.Status.DesiredNumberScheduled)
	}
	for i := range s.StatefulSets {
		d := &s.StatefulSets[i]
		r.rollout(kindStatefulSet, d, statefulSet(d), d.Generation, d.Status.UpdateRevision)
	}
}

// revision is the annotation by which a Deployment counts its rollouts.
const revision = "deployment.kubernetes.io/revision"

func (r *Report) rollout(kind string, object metav1.Object, waitsFor string, marks ...any) {
	if !strings.HasPrefix(object.GetNamespace(), platform) {
		return
	}
	if waitsFor != "" {
		r.moving(name(kind, object), metav1.Time{}, "%s", waitsFor)
	}
	r.mark(name(kind, object), append(marks, object.GetUID())...)
}

func deployment(d *appsv1.Deployment) string {
	replicas, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	switch {
	case status.ObservedGeneration < d.Generation:
		return notSeen
	case status.UpdatedReplicas < replicas:
		return fmt.Sprintf("%d of %d pods are updated", status.UpdatedReplicas, replicas)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf("%d old pods are still there", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < replicas:
		return fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, replicas)
	}
	return ""
}

// deploymentMarks tell of pods that went and came back between two looks.
func deploymentMarks(d *appsv1.Deployment) []string {
	var marks []string
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			marks = append(marks, condition{kind: string(c.Type), status: string(c.Status), since: c.LastTransitionTime}.mark())
		}
	}
	return marks
}

func daemonSet(d *appsv1.DaemonSet) string {
	status := d.Status
	byItself := d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	switch {
	case status.ObservedGeneration < d.Generation:
		return notSeen
	case byItself && status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods are updated", status.UpdatedNumberScheduled, status.DesiredNumberScheduled)
	case status.NumberAvailable < status.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods are available", status.NumberAvailable, status.DesiredNumberScheduled)
	}
	return ""
}

func statefulSet(d *appsv1.StatefulSet) string {
	replicas, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	updated := replicas
	if strategy := d.Spec.UpdateStrategy; strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		updated = 0
	} else if strategy.RollingUpdate != nil {
		updated -= ptr.Deref(strategy.RollingUpdate.Partition, 0)
	}
	switch {
	case status.ObservedGeneration < d.Generation:
		return notSeen
	// All at one revision counts none as updated.
	case status.UpdateRevision != status.CurrentRevision && status.UpdatedReplicas < updated:
		return fmt.Sprintf("%d of %d pods are updated", status.UpdatedReplicas, updated)
	case status.AvailableReplicas < replicas:
		return fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, replicas)
	}
	return ""
}

// apiServers looks at the pods of the API server. On a single node each of their restarts is an outage, of up to two minutes (R-OPS-4).
func (r *Report) apiServers(s *State) {
	for i := range s.APIServers {
		pod := &s.APIServers[i]
		object := name(kindPod, pod)
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		r.mark(object, pod.UID, restarts)
		ready := condition{kind: string(corev1.PodReady), status: string(corev1.ConditionUnknown)}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				ready = condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
			}
		}
		if ready.status != string(corev1.ConditionTrue) {
			r.moving(object, ready.since, "%s", ready)
		}
	}
}
