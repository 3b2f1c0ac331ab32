// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// The Deployment is in the cache as rolled out, and the pods are as they were: nothing would be evicted, and the check
// would pass.
func TestRolledOutWaitsForPods(t *testing.T) {
	const namespace, revision = "a-copy", "2"
	pod := func(name, revision string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Phase: phase}}
		if revision != "" {
			p.Annotations = map[string]string{revisionAnnotation: revision}
		}
		return p
	}
	leaving := pod("a", revision, corev1.PodRunning)
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want bool
	}{
		"the new pod":                 {[]*corev1.Pod{pod("a", revision, corev1.PodRunning)}, true},
		"no pod yet":                  {nil, false},
		"the new pod not yet running": {[]*corev1.Pod{pod("a", revision, corev1.PodPending)}, false},
		"still the old pod":           {[]*corev1.Pod{pod("a", "", corev1.PodRunning)}, false},
		"the pod is being deleted":    {[]*corev1.Pod{leaving}, false},
		"both":                        {[]*corev1.Pod{pod("a", "", corev1.PodRunning), pod("b", revision, corev1.PodRunning)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			copied := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "router", Generation: 2},
				Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revisionAnnotation: revision}},
				}},
				Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
			}
			deployments := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if err := deployments.Add(copied); err != nil {
				t.Fatal(err)
			}
			for _, p := range test.pods {
				if err := pods.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			c := &workloadCopy{
				workloadCopier: &workloadCopier{deployments: appslisters.NewDeploymentLister(deployments), pods: corelisters.NewPodLister(pods)},
				shape:          shape{deployment: copied}, namespace: namespace,
			}
			if got := c.rolledOut(2); got != test.want {
				t.Errorf("rolled out: %t, want %t", got, test.want)
			}
		})
	}
}
