// Package drains plays the agents of nodes, which ask for drains by annotation, and reads from the audit log what was done for them.
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

// ErrWatch says that a watch ended before what was waited for came.
var ErrWatch = errors.New("the watch ended")

// WriteRequest writes a request onto a node.
func WriteRequest(ctx context.Context, kube kubernetes.Interface, node string, request machineconfig.Request) error {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, machineconfig.DesiredDrainAnnotation, request)
	if _, err := kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "agent"}); err != nil {
		return fmt.Errorf("ask for %s on node %s: %w", request, node, err)
	}
	return nil
}

// WaitForCompletion returns when the node has the answer. It watches, so that it takes no longer than the controller.
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
	return fmt.Errorf("%w: node %s has no answer to %s: %w", ErrWatch, node, request, ctx.Err())
}

// Actions is what a user did to nodes and pods, by the API server's own record.
type Actions struct {
	// Evicted are the pods whose eviction was granted, as namespace/name, in order of their names, and Refused how many requests were
	// refused because of a budget.
	Evicted []string
	Refused int
	// Cordons are writes to nodes other than answers, and Completions the answers, as names of nodes in the order in which they came.
	Cordons, Completions []string
	// Others are all other writes but events, Leases and conditions.
	Others []string
}

// Read reads what the user did since the offset of the audit log.
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

// Evictable are the pods on a node that have to go elsewhere before it restarts, as namespace/name in order: all but those of DaemonSets.
func Evictable(ctx context.Context, kube kubernetes.Interface, node string) ([]string, error) {
	pods, err := kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	names := []string{}
	for i := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); owner == nil || owner.Kind != "DaemonSet" {
			names = append(names, pods.Items[i].Namespace+"/"+pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
