// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
)

// A module whose controller has no image could not be deployed.
func TestEveryControllerHasAnImage(t *testing.T) {
	for _, module := range framework.AllModules() {
		if !slices.Contains(programs.Shipped(), module.Controller()) {
			t.Error(module)
		}
	}
}

// A pod that succeeded does not change; one that failed, or is neither ready nor unschedulable, does.
func TestMoves(t *testing.T) {
	const namespace = "openshift-console"
	status := func(phase corev1.PodPhase, conditions ...corev1.PodCondition) corev1.PodStatus {
		return corev1.PodStatus{Phase: phase, Conditions: conditions}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	notReady := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	unschedulable := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	for name, test := range map[string]struct {
		namespace string
		status    corev1.PodStatus
		want      bool
	}{
		"created":       {namespace, status(corev1.PodPending), true},
		"not ready":     {namespace, status(corev1.PodRunning, notReady), true},
		"controller":    {framework.SystemNamespace, status(corev1.PodPending), true},
		"ready":         {namespace, status(corev1.PodRunning, ready), false},
		"unschedulable": {namespace, status(corev1.PodPending, unschedulable), false},
		"installer":     {namespace, status(corev1.PodSucceeded), false},
		"failed":        {"openshift-kube-apiserver", status(corev1.PodFailed), true},
		"another's":     {"kube-system", status(corev1.PodPending), false},
	} {
		if got := moves(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace}, Status: test.status}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A failed installer counts as retried only if another of the same revision succeeded on the same node.
func TestRetried(t *testing.T) {
	pod := func(namespace, node string, revision types.UID, phase corev1.PodPhase) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		if revision != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", UID: revision}}
		}
		return p
	}
	failed := pod("a", "n", "2", corev1.PodFailed)
	for name, test := range map[string]struct {
		pod, other corev1.Pod
		want       bool
	}{
		"the retry succeeded":     {failed, pod("a", "n", "2", corev1.PodSucceeded), true},
		"the retry is running":    {failed, pod("a", "n", "2", corev1.PodRunning), false},
		"the retry failed too":    {failed, pod("a", "n", "2", corev1.PodFailed), false},
		"another revision":        {failed, pod("a", "n", "3", corev1.PodSucceeded), false},
		"another node":            {failed, pod("a", "m", "2", corev1.PodSucceeded), false},
		"another operator":        {failed, pod("b", "n", "2", corev1.PodSucceeded), false},
		"without an owner":        {pod("a", "n", "", corev1.PodFailed), pod("a", "n", "", corev1.PodSucceeded), false},
		"a pod that is not ready": {pod("a", "n", "2", corev1.PodRunning), pod("a", "n", "2", corev1.PodSucceeded), false},
	} {
		if got := retried(&test.pod, []corev1.Pod{test.pod, test.other}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
