// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// Annotations of the protocol between the daemon on a node and the controller that drains it.
const (
	desiredDrain = "machineconfiguration.openshift.io/desiredDrain"
	appliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
	drainRequest = "sno-conformance"
)

// drainAll requests a drain and then an uncordon for every node for which a machine-config daemon does, one after the
// other. The controller drains whatever is requested (U-MCO-1, U-MCO-2).
func (d *Disturber) drainAll(ctx context.Context) ([]catalogue.Drain, error) {
	d.Target.Progressf("Requesting a drain of every node")
	var drains []catalogue.Drain
	for _, node := range d.Before.Nodes {
		drain, err := d.drain(ctx, node.Name)
		if !drain.NotRequested {
			err = errors.Join(err, d.uncordon(ctx, node.Name))
		}
		if err != nil {
			return nil, err
		}
		if err := d.waitAvailable(ctx); err != nil {
			return nil, err
		}
		drains = append(drains, drain)
	}
	return drains, nil
}

func (d *Disturber) drain(ctx context.Context, node string) (catalogue.Drain, error) {
	drain := catalogue.Drain{Node: node}
	asked, err := d.Set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return drain, fmt.Errorf("read node %s: %w", node, err)
	}
	if asked.Annotations[catalogue.NodeTopology] == string(configv1.SingleReplicaTopologyMode) {
		drain.NotRequested, drain.Cordoned = true, asked.Spec.Unschedulable
		return drain, nil
	}
	before, err := d.evictable(ctx, node)
	if err != nil {
		return drain, err
	}
	drain.Evictable = len(before)
	if err := d.patch(ctx, node, `{"metadata":{"annotations":{"`+desiredDrain+`":"drain-`+drainRequest+`"}}}`); err != nil {
		return drain, err
	}
	if drain.Acknowledged, err = d.acknowledged(ctx, node, "drain-"+drainRequest); err != nil {
		return drain, err
	}
	live, err := d.Set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return drain, fmt.Errorf("read node %s: %w", node, err)
	}
	drain.Cordoned = live.Spec.Unschedulable
	after, err := d.evictable(ctx, node)
	if err != nil {
		return drain, err
	}
	for _, uid := range before {
		if !slices.Contains(after, uid) {
			drain.Evicted++
		}
	}
	return drain, nil
}

// uncordon requests an uncordon, and then uncordons the node itself in case no controller did.
func (d *Disturber) uncordon(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Target.Times.Converge+d.Target.Times.Cleanup)
	defer cancel()
	if err := d.patch(ctx, node, `{"metadata":{"annotations":{"`+desiredDrain+`":"uncordon-`+drainRequest+`"}}}`); err != nil {
		return err
	}
	if _, err := d.acknowledged(ctx, node, "uncordon-"+drainRequest); err != nil {
		return err
	}
	return d.patch(ctx, node, `{"metadata":{"annotations":{"`+desiredDrain+`":null,"`+appliedDrain+`":null}},"spec":{"unschedulable":null}}`)
}

// evictable returns the UIDs of the node's pods that a controller would recreate elsewhere.
func (d *Disturber) evictable(ctx context.Context, node string) ([]types.UID, error) {
	list, err := d.Set.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var all []types.UID
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Kind != "DaemonSet" && owner.Kind != "Node" && list.Items[i].Labels[cluster.RunLabel] == "" {
			all = append(all, list.Items[i].UID)
		}
	}
	return all, nil
}

func (d *Disturber) patch(ctx context.Context, node, body string) error {
	_, err := d.Set.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "machine-config-daemon"})
	if err != nil {
		return fmt.Errorf("patch node %s: %w", node, err)
	}
	return nil
}

func (d *Disturber) acknowledged(ctx context.Context, node, request string) (bool, error) {
	acknowledged, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Converge, func(ctx context.Context) (bool, error) {
		live, err := d.Set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return err == nil && live.Annotations[appliedDrain] == request, err
	})
	if err != nil {
		return false, fmt.Errorf("wait for the acknowledgement of node %s: %w", node, err)
	}
	return acknowledged, nil
}
