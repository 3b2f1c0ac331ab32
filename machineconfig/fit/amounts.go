package fit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// amounts are resources in the units in which the scheduler counts: millicores of CPU, whole units of everything else, and one per pod.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, quantity := range list {
		out[name] = inUnits(name, quantity)
	}
	return out
}

func inUnits(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

func capacity(node *corev1.Node) amounts { return amountsOf(node.Status.Allocatable) }

// needed is what the successor of a pod requests. What a resize made of the running pod does not pass on to it.
func needed(pod *corev1.Pod) amounts {
	out := amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	out[corev1.ResourcePods] = 1
	return out
}

// requested is what a pod takes from its node: what it asks for or, while it is resized, what it has, whichever is more.
func requested(pod *corev1.Pod) amounts {
	out := needed(pod)
	has := amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
	for name, amount := range has {
		out[name] = max(out[name], amount)
	}
	return out
}

func (a amounts) take(b amounts) {
	for name, amount := range b {
		a[name] -= amount
	}
}

// holds tells whether there is room for what is requested; nothing requested always fits.
func (a amounts) holds(b amounts) bool {
	for name, amount := range b {
		if amount > 0 && amount > a[name] {
			return false
		}
	}
	return true
}
