// SPDX-License-Identifier: Apache-2.0

// Package drains simulates the agents of nodes, which request drains by annotation, and reads the resulting actions
// from the audit log.
package drains

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
)

// ErrWatch means that a watch ended before a request was completed.
var ErrWatch = errors.New("the watch ended")

// WriteRequest writes a request to a node.
func WriteRequest(ctx context.Context, kube kubernetes.Interface, node string, request machineconfig.Request) error {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, machineconfig.DesiredDrainAnnotation, request)
	if _, err := kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "agent"}); err != nil {
		return fmt.Errorf("request %s on node %s: %w", request, node, err)
	}
	return nil
}

// WaitForCompletion returns when the node has the completed request. A watch avoids a delay.
func WaitForCompletion(ctx context.Context, kube kubernetes.Interface, node string, request machineconfig.Request) error {
	watching, err := kube.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()})
	if err != nil {
		return fmt.Errorf("watch node %s: %w", node, err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if n, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted && n.Annotations[machineconfig.LastAppliedDrainAnnotation] == request.String() {
			return nil
		}
	}
	return fmt.Errorf("%w: node %s has not completed %s: %w", ErrWatch, node, request, ctx.Err())
}

// Actions are the actions of a user on nodes and pods, from the audit log.
type Actions struct {
	// Evicted are the evicted pods as namespace/name, sorted, and Refused is the number of evictions that a budget
	// refused.
	Evicted []string
	Refused int
	// Cordons are the nodes of writes other than completions, and Completions those of completions, in order.
	Cordons, Completions []string
	// Others are all other writes, without events, Leases and conditions.
	Others []string
}

// Read reads the actions of a user since an offset of the audit log.
func Read(ctx context.Context, c *embedded.Cluster, offset int64, user string) (Actions, error) {
	events, _, err := c.AuditEvents(ctx, offset, embedded.AuditFilter{User: user, WritesOnly: true})
	if err != nil {
		return Actions{}, err
	}
	var done Actions
	for _, event := range events {
		on := event.ObjectRef
		granted := event.ResponseStatus != nil && event.ResponseStatus.Code < http.StatusMultipleChoices
		switch {
		case on == nil:
			done.Others = append(done.Others, event.Verb+" "+event.RequestURI)
		case on.Resource == "pods" && on.Subresource == "eviction" && granted:
			done.Evicted = append(done.Evicted, on.Namespace+"/"+on.Name)
		case on.Resource == "pods" && on.Subresource == "eviction":
			done.Refused++
		case on.Resource == "nodes" && on.Subresource == "" && strings.Contains(event.RequestURI, "fieldManager="):
			done.Completions = append(done.Completions, on.Name)
		case on.Resource == "nodes" && on.Subresource == "":
			done.Cordons = append(done.Cordons, on.Name)
		case on.Resource == "events", on.Resource == "leases", on.Subresource == "status":
		default:
			done.Others = append(done.Others, event.Verb+" "+event.RequestURI)
		}
	}
	slices.Sort(done.Evicted)
	return done, nil
}

// Evictable returns the pods on a node that a drain has to evict, as namespace/name, sorted: all but those of
// DaemonSets and static ones.
func Evictable(ctx context.Context, kube kubernetes.Interface, node string) ([]string, error) {
	pods, err := kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	names := []string{}
	for i := range pods.Items {
		_, static := pods.Items[i].Annotations[corev1.MirrorPodAnnotationKey]
		if owner := metav1.GetControllerOf(&pods.Items[i]); !static && (owner == nil || owner.Kind != "DaemonSet") {
			names = append(names, pods.Items[i].Namespace+"/"+pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
