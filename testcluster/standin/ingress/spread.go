// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
)

// spreadEvery is the stock operator's interval in addition to changes: a pod becomes available without an event.
const spreadEvery = time.Minute

// spreader is the stock operator's spread-default-router-pods: of several available pods of the default router on one
// node it evicts the oldest, independently of the topology, the placement and the publishing strategy. Budgets are
// honoured.
type spreader struct {
	client          client.Client
	minReadySeconds int32
}

func (s *spreader) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods, client.InNamespace(ingress.RouterNamespace), client.MatchingLabels{podLabel: ingress.IngressControllerName}); err != nil {
		return 0, fmt.Errorf("listing the routers: %w", err)
	}
	for _, pod := range crowded(pods.Items, s.minReadySeconds) {
		logr.FromContextOrDiscard(ctx).Info("Evicting one of several routers on a node", "pod", pod.Name, "node", pod.Spec.NodeName)
		if err := s.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("evicting router %s: %w", pod.Name, err)
		}
	}
	return spreadEvery, nil
}

func crowded(pods []corev1.Pod, minReadySeconds int32) []*corev1.Pod {
	on := map[string][]*corev1.Pod{}
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && podutils.IsPodAvailable(pod, minReadySeconds, metav1.Now()) {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	var oldest []*corev1.Pod
	for _, node := range slices.Sorted(maps.Keys(on)) {
		if len(on[node]) > 1 {
			oldest = append(oldest, slices.MinFunc(on[node], func(a, b *corev1.Pod) int {
				return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
			}))
		}
	}
	return oldest
}
