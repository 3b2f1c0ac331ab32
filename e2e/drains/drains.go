// SPDX-License-Identifier: Apache-2.0

// Package drains simulates the agents of nodes, which request drains by annotation, and reads the resulting actions
// from the audit log.
package drains

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
)

// WriteRequest writes a request to a node.
func WriteRequest(ctx context.Context, kube kubernetes.Interface, node string, request machineconfig.Request) {
	GinkgoHelper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, machineconfig.DesiredDrainAnnotation, request)
	suite.Must(kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "agent"}))
}

// WaitForCompletion returns when the node has the completed request. A watch avoids a delay.
func WaitForCompletion(ctx context.Context, kube kubernetes.Interface, node string, request machineconfig.Request) {
	GinkgoHelper()
	watching := suite.Must(kube.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()}))
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if n, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted && n.Annotations[machineconfig.LastAppliedDrainAnnotation] == request.String() {
			return
		}
	}
	Fail(fmt.Sprintf("node %s has not completed %s: %v", node, request, ctx.Err()))
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
func Read(ctx context.Context, c *embedded.Cluster, offset int64, user string) (done Actions) {
	GinkgoHelper()
	events, _, err := c.AuditEvents(ctx, offset, embedded.AuditFilter{User: user, WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
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
	return done
}

// Evictable returns the pods on a node that `kubectl drain` would evict, as namespace/name, sorted.
func Evictable(ctx context.Context, kube kubernetes.Interface, node string) []string {
	GinkgoHelper()
	kubectl := &drain.Helper{Ctx: ctx, Client: kube, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1}
	list, errs := kubectl.GetPodsForDeletion(node)
	Expect(errs).To(BeEmpty())
	names := []string{}
	for _, pod := range list.Pods() {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	slices.Sort(names)
	return names
}
