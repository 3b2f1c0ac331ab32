// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // as in tests
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
)

// WaitSettled waits until every controller has its expected reason, and no pod is starting or ending.
func (e *Env) WaitSettled(ctx context.Context) {
	GinkgoHelper()
	for module, reasons := range embeddedtarget.ExpectedReasons(e.Scenario) {
		suite.Must(e.WaitReason(ctx, module, settleTimeout, reasons...))
	}
	Eventually(ctx, func(ctx context.Context) (moving []string, err error) {
		list, err := e.Cluster.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; moves(pod) && !retried(pod, list.Items) {
				moving = append(moving, pod.Namespace+"/"+pod.Name+" is "+string(pod.Status.Phase))
			}
		}
		return moving, nil
	}).WithTimeout(settleTimeout).WithPolling(poll).Should(BeEmpty(), "pods that start or end")
}

// moves reports whether a pod of the controllers or of OpenShift is not settled. An unschedulable one is settled.
func moves(pod *corev1.Pod) bool {
	if pod.Namespace != framework.SystemNamespace && !strings.HasPrefix(pod.Namespace, "openshift-") {
		return false
	}
	if pod.DeletionTimestamp != nil {
		return true
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable:
			return false
		}
	}
	return true
}

// retried reports whether an installer pod failed and another of the same revision succeeded on the node. Operators
// keep the failed one.
func retried(failed *corev1.Pod, pods []corev1.Pod) bool {
	return failed.Status.Phase == corev1.PodFailed && len(failed.OwnerReferences) > 0 && slices.ContainsFunc(pods, func(other corev1.Pod) bool {
		return other.Status.Phase == corev1.PodSucceeded && other.Namespace == failed.Namespace && other.Spec.NodeName == failed.Spec.NodeName &&
			slices.ContainsFunc(other.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == failed.OwnerReferences[0].UID })
	})
}
