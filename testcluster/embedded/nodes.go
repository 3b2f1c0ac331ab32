// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	rolePrefix = "node-role.kubernetes.io/"
	// notReadyAnnotation excludes a node from the simulated kubelets, see SetNodeReady.
	notReadyAnnotation = "sno.solonode.github.io/not-ready"
	nodeCreators       = 16
	pollInterval       = 25 * time.Millisecond
)

// NodeSpec describes a simulated node.
type NodeSpec struct {
	Name string
	// Roles become labels node-role.kubernetes.io/<role> with an empty value, such as master, control-plane, worker.
	Roles []string
	// Labels are additional labels, besides those of roles, hostname, operating system and architecture.
	Labels map[string]string
	Taints []corev1.Taint
	// Capacity is also what the node offers. Empty: 8 CPUs, 32 GiB, 250 pods.
	Capacity corev1.ResourceList
	// Address is the node's internal IP. Empty: the next one of 10.0.0.0/16.
	Address string
}

// AddNodes adds simulated nodes and returns when all are Ready and pods can be scheduled to them.
func (c *Cluster) AddNodes(ctx context.Context, specs ...NodeSpec) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeCreators)
	waiting := map[string]bool{}
	for _, spec := range specs {
		waiting[spec.Name] = true
		node := c.node(spec)
		group.Go(func() error {
			if _, err := c.clientset.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("add node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		nodes, err := c.clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if last = err; err != nil {
			return false, nil
		}
		for i := range nodes.Items {
			if schedulable(&nodes.Items[i]) {
				delete(waiting, nodes.Items[i].Name)
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d new nodes are not Ready: %w", len(waiting), len(specs), errors.Join(err, last))
	}
	return nil
}

// schedulable reports whether a node is Ready and has none of the taints of a node that is not.
func schedulable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	return NodeReady(node)
}

// NodeReady reports whether a node's Ready condition is True.
func NodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (c *Cluster) node(spec NodeSpec) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   spec.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	}
	for _, role := range spec.Roles {
		labels[rolePrefix+role] = ""
	}
	maps.Copy(labels, spec.Labels)
	capacity := spec.Capacity
	if len(capacity) == 0 {
		capacity = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:   resource.MustParse("250"),
		}
	}
	address := spec.Address
	if address == "" {
		n := c.addresses.Add(1) + 9
		address = fmt.Sprintf("10.0.%d.%d", n>>8, n&0xff)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: spec.Taints},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address},
				{Type: corev1.NodeHostName, Address: spec.Name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: runtime.GOARCH, OperatingSystem: "linux", KubeletVersion: c.assets.Version, BootID: string(uuid.NewUUID()),
			},
		},
	}
}

// DeleteNode deletes a node and its lease. Its pods stay until the garbage collector of Kubernetes finds them, which
// takes up to a minute, as on a real cluster. Kubernetes would also remove the lease, but kwok takes ten seconds to
// notice that the old one of a node that is added again is gone.
func (c *Cluster) DeleteNode(ctx context.Context, name string) error {
	if err := c.clientset.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	err := c.clientset.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the lease of node %s: %w", name, err)
	}
	return nil
}

// SetNodeReady sets the Ready condition of a node as its kubelet would, and returns when the taints match.
func (c *Cluster) SetNodeReady(ctx context.Context, name string, ready bool) error {
	nodes := c.clientset.CoreV1().Nodes()
	annotation := []byte(`{"metadata":{"annotations":{"` + notReadyAnnotation + `":"true"}}}`)
	if ready {
		annotation = []byte(`{"metadata":{"annotations":{"` + notReadyAnnotation + `":null}}}`)
	}
	node, err := nodes.Patch(ctx, name, types.MergePatchType, annotation, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("set readiness of node %s: %w", name, err)
	}
	if !ready {
		now := metav1.Now()
		status := corev1ac.Node(node.Name).WithStatus(corev1ac.NodeStatus().WithConditions(corev1ac.NodeCondition().
			WithType(corev1.NodeReady).WithStatus(corev1.ConditionFalse).WithReason("KubeletNotReady").WithMessage("Set by a test.").
			WithLastHeartbeatTime(now).WithLastTransitionTime(now)))
		if _, err := nodes.ApplyStatus(ctx, status, metav1.ApplyOptions{FieldManager: "kubelet", Force: true}); err != nil {
			return fmt.Errorf("set readiness of node %s: %w", name, err)
		}
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return NodeReady(node) == ready && schedulable(node) == ready, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the readiness of node %s: %w", name, err)
	}
	return nil
}

// SetBootID gives a node another boot ID, as its kubelet does after a boot.
func (c *Cluster) SetBootID(ctx context.Context, name string) error {
	body := fmt.Sprintf(`{"status":{"nodeInfo":{"bootID":%q}}}`, uuid.NewUUID())
	if _, err := c.clientset.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("set the boot ID of node %s: %w", name, err)
	}
	return nil
}

func exceptNotReady(stage map[string]any) error {
	kind, _, err := unstructured.NestedString(stage, "spec", "resourceRef", "kind")
	if err != nil || kind != "Node" {
		return err
	}
	path := []string{"spec", "selector", "matchExpressions"}
	expressions, _, err := unstructured.NestedSlice(stage, path...)
	if err != nil {
		return err
	}
	expressions = append(expressions, map[string]any{
		"key": `.metadata.annotations["` + notReadyAnnotation + `"]`, "operator": "DoesNotExist",
	})
	return unstructured.SetNestedSlice(stage, expressions, path...)
}
