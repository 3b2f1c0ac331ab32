// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/report"
)

const (
	moduleMachineConfig = "machineconfig"
	// Annotations of the protocol between the daemon on a node and the controller that drains it.
	desiredDrain = "machineconfiguration.openshift.io/desiredDrain"
	appliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
	drainRequest = "sno-conformance"
	// nodeTopology is the annotation from which the daemon reads whether it requests drains.
	nodeTopology = "machineconfiguration.openshift.io/controlPlaneTopology"
)

func machineConfigChecks() []Check {
	skip := Requirement{"R-MCO-2", "where the high-availability mode is None no node is drained, workers included"}
	graceful := Requirement{"R-MCO-3", "graceful shutdown of the kubelet ends workloads safely at a restart"}
	without := func(in *Input) string {
		return unsupported(!in.Disruptor.cluster.target.MayDrain, "drain requests of nodes")
	}
	run := func(evaluate func(*State, Drain) report.Evidence) func(context.Context, *Input) ([]report.Evidence, error) {
		return func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			drains, err := in.Disruptor.Drain(ctx)
			if err != nil {
				return nil, err
			}
			var evidence []report.Evidence
			for _, d := range drains {
				evidence = append(evidence, evaluate(in.State, d))
			}
			return evidence, nil
		}
	}
	return []Check{
		{
			ID: "SNO-MCO-001", Title: "No node is drained before it restarts on a single control-plane node", Module: moduleMachineConfig, Requirement: skip, Level: Core, Tier: Disruptive,
			Topologies: []string{"SingleReplica"}, Needs: []string{"nodes without a machine-config daemon"}, MissingInput: without,
			NotApplicable: func(s *State) string {
				if !single(s.controlPlaneMode()) {
					return "the control plane is not SingleReplica"
				}
				return ""
			},
			Run: run(notDrained),
			Controls: []Control{
				{Name: "a node is cordoned", Change: onDrain(func(d *Drain) { d.Cordoned = true })},
				{Name: "a pod is evicted", Change: onDrain(func(d *Drain) { d.Evicted = 1 })},
				{Name: "the request is not acknowledged", Change: onDrain(func(d *Drain) { d.NotRequested, d.Acknowledged = false, false })},
				{Name: "one more pod on the node", MustPass: true, Change: onDrain(func(d *Drain) { d.Evictable++ })},
				onCluster("a controller drains every node that requests it"),
			},
		},
		{
			ID: "SNO-MCO-002", Title: "A node is drained before it restarts where the control plane is highly available", Module: moduleMachineConfig,
			Requirement: Requirement{"R-OPS-2", "a highly available cluster keeps its availability: nodes are drained as before"},
			Level:       Core, Tier: Disruptive, Topologies: []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "External"},
			Needs: []string{"nodes without a machine-config daemon"}, MissingInput: without,
			NotApplicable: func(s *State) string {
				if single(s.controlPlaneMode()) {
					return "the control plane is SingleReplica"
				}
				return ""
			},
			Run: run(wasDrained),
			Controls: []Control{
				{Name: "pods stay on the node", Change: onDrain(func(d *Drain) { d.Evicted, d.Evictable = 0, d.Evictable+1 })},
				{Name: "the node is not cordoned", Change: onDrain(func(d *Drain) { d.Cordoned = false })},
				{Name: "the request is not acknowledged", Change: onDrain(func(d *Drain) { d.Acknowledged = false })},
				{Name: "the daemon requests no drain", Change: onDrain(func(d *Drain) { d.NotRequested = true })},
				{Name: "one more pod, which is evicted", MustPass: true, Change: onDrain(func(d *Drain) { d.Evicted++; d.Evictable++ })},
				onCluster("a controller acknowledges requests and drains no node"),
			},
		},
		{
			ID: "SNO-MCO-003", Title: "Kubelets of the control plane shut down gracefully on a single node", Module: moduleMachineConfig, Requirement: graceful, Level: Extended, Tier: Static,
			Topologies: []string{"SingleReplica"}, Needs: []string{"a machine-config operator"}, NeedsPool: true,
			NotApplicable: func(s *State) string {
				switch {
				case s.Missing["kubeletconfigs.machineconfiguration.openshift.io"] || s.ControllerConfig == nil:
					return "no machine-config operator reads a KubeletConfig"
				case !single(s.controlPlaneMode()):
					return "the control plane is not SingleReplica"
				case len(s.Nodes) > 1:
					return "other nodes exist, which would send requests to terminating pods"
				}
				return ""
			},
			Run: gracefulShutdown,
			Controls: []Control{
				{Name: "no KubeletConfig", Change: func(in *Input) bool { in.State.KubeletConfigs = nil; return true }},
				{Name: "the KubeletConfig is for another pool", Change: onPool(func(p *Pool) { p.Labels = map[string]string{"pool": "another"} })},
				{Name: "the rendered grace period is 0", Change: onPool(func(p *Pool) { p.ShutdownGracePeriod = "0s" })},
				{Name: "nothing is rendered", Change: onPool(func(p *Pool) { p.Rendered, p.ShutdownGracePeriod = "", "" })},
				{Name: "one more KubeletConfig", MustPass: true, Change: func(in *Input) bool {
					in.State.KubeletConfigs = append(in.State.KubeletConfigs, unstructured.Unstructured{Object: map[string]any{}})
					return true
				}},
			},
		},
	}
}

const notRequested = "not requested: annotation " + nodeTopology + " is SingleReplica"

func notDrained(_ *State, d Drain) report.Evidence {
	const want = "acknowledged, no pod evicted; or not requested"
	got, held := "acknowledged, no pod evicted", false
	switch {
	case !d.NotRequested && !d.Acknowledged:
		got = "not acknowledged"
	case d.Cordoned || d.Evicted > 0:
		got = fmt.Sprintf("cordoned: %t, evicted pods: %d", d.Cordoned, d.Evicted)
	case d.NotRequested:
		got, held = notRequested, true
	default:
		held = true
	}
	return found("Node "+d.Node, "requested drain", want, got, held)
}

func wasDrained(_ *State, d Drain) report.Evidence {
	want := "acknowledged, cordoned, all pods evicted"
	got := want
	switch {
	case d.NotRequested:
		got = notRequested
	case !d.Acknowledged:
		got = "not acknowledged"
	case !d.Cordoned || d.Evicted != d.Evictable:
		got = fmt.Sprintf("cordoned: %t, evicted pods: %d of %d", d.Cordoned, d.Evicted, d.Evictable)
	}
	return found("Node "+d.Node, "requested drain", want, got, got == want)
}

func onDrain(change func(*Drain)) func(*Input) bool {
	return func(in *Input) bool {
		if len(in.Disruptor.Results.Drains) == 0 {
			return false
		}
		change(&in.Disruptor.Results.Drains[0])
		return true
	}
}

// gracefulShutdown requires a KubeletConfig with a grace period for the control plane's pool, and a rendered one.
func gracefulShutdown(_ context.Context, in *Input) ([]report.Evidence, error) {
	const want = "more than 0"
	pool := in.State.Pool
	if pool == nil {
		return missingObject("MachineConfigPool " + controlPlanePool), nil
	}
	selecting := "none"
	for _, config := range in.State.KubeletConfigs {
		period, _, err := unstructured.NestedString(config.Object, "spec", "kubeletConfig", "shutdownGracePeriod")
		if err == nil && positive(period) && selectsPool(config, pool.Labels) {
			selecting = config.GetName()
		}
	}
	rendered, period := "MachineConfig "+pool.Rendered, pool.ShutdownGracePeriod
	if pool.Rendered == "" {
		rendered, period = "MachineConfigPool "+pool.Name+", rendered configuration", "nothing is rendered"
	}
	return []report.Evidence{
		found("KubeletConfigs for MachineConfigPool "+pool.Name, "spec.kubeletConfig.shutdownGracePeriod", want, selecting, selecting != "none"),
		found(rendered, kubeletFile+", shutdownGracePeriod", want, period, positive(period)),
	}, nil
}

func positive(period string) bool {
	length, err := time.ParseDuration(period)
	return err == nil && length > 0
}

// selectsPool returns false for a KubeletConfig without a selector.
func selectsPool(config unstructured.Unstructured, labels map[string]string) bool {
	object, found, err := unstructured.NestedMap(config.Object, "spec", "machineConfigPoolSelector")
	if err != nil || !found {
		return false
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, selector); err != nil {
		return false
	}
	return selects(selector, labels)
}

func onPool(change func(*Pool)) func(*Input) bool {
	return func(in *Input) bool {
		if in.State.Pool == nil {
			return false
		}
		change(in.State.Pool)
		return true
	}
}

// Drain is the result of a drain request of a node.
type Drain struct {
	Node string
	// NotRequested means that a daemon requests none: its node has the annotation of a single control-plane node.
	NotRequested bool
	// Evicted is the number of pods that were evicted.
	Acknowledged, Cordoned bool
	Evicted                int
	Evictable              int
}

// Drain requests a drain and then an uncordon for every node for which a machine-config daemon does, one after the
// other. The controller drains whatever is requested (U-MCO-1, U-MCO-2).
func (d *Disruptor) Drain(ctx context.Context) ([]Drain, error) {
	if d.Results.Drains == nil {
		d.cluster.progressf("Requesting a drain of every node")
		for _, node := range d.cluster.before.Nodes {
			drain, err := d.cluster.drain(ctx, node.Name)
			if !drain.NotRequested {
				err = errors.Join(err, d.cluster.uncordon(ctx, node.Name))
			}
			if err != nil {
				return nil, err
			}
			if err := d.cluster.waitAvailable(ctx); err != nil {
				return nil, err
			}
			d.Results.Drains = append(d.Results.Drains, drain)
		}
	}
	return d.Results.Drains, nil
}

func (c *targetCluster) drain(ctx context.Context, node string) (Drain, error) {
	d := Drain{Node: node}
	asked, err := c.set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return d, fmt.Errorf("read node %s: %w", node, err)
	}
	if asked.Annotations[nodeTopology] == string(configv1.SingleReplicaTopologyMode) {
		d.NotRequested, d.Cordoned = true, asked.Spec.Unschedulable
		return d, nil
	}
	before, err := c.evictable(ctx, node)
	if err != nil {
		return d, err
	}
	d.Evictable = len(before)
	if err := c.annotate(ctx, node, map[string]any{desiredDrain: "drain-" + drainRequest}); err != nil {
		return d, err
	}
	if d.Acknowledged, err = c.acknowledged(ctx, node, "drain-"+drainRequest); err != nil {
		return d, err
	}
	live, err := c.set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return d, fmt.Errorf("read node %s: %w", node, err)
	}
	d.Cordoned = live.Spec.Unschedulable
	after, err := c.evictable(ctx, node)
	if err != nil {
		return d, err
	}
	for _, uid := range before {
		if !slices.Contains(after, uid) {
			d.Evicted++
		}
	}
	return d, nil
}

// uncordon requests an uncordon, and then uncordons the node itself in case no controller did.
func (c *targetCluster) uncordon(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.target.Times.Converge+c.target.Times.Cleanup)
	defer cancel()
	if err := c.annotate(ctx, node, map[string]any{desiredDrain: "uncordon-" + drainRequest}); err != nil {
		return err
	}
	if _, err := c.acknowledged(ctx, node, "uncordon-"+drainRequest); err != nil {
		return err
	}
	body := []byte(`{"metadata":{"annotations":{"` + desiredDrain + `":null,"` + appliedDrain + `":null}},"spec":{"unschedulable":null}}`)
	if _, err := c.set.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "machine-config-daemon"}); err != nil {
		return fmt.Errorf("uncordon node %s: %w", node, err)
	}
	return nil
}

// evictable returns the UIDs of the node's pods that a controller would recreate elsewhere.
func (c *targetCluster) evictable(ctx context.Context, node string) ([]types.UID, error) {
	list, err := c.set.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var all []types.UID
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Kind != "DaemonSet" && owner.Kind != "Node" && list.Items[i].Labels[runLabel] == "" {
			all = append(all, list.Items[i].UID)
		}
	}
	return all, nil
}

func (c *targetCluster) annotate(ctx context.Context, node string, annotations map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = c.set.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "machine-config-daemon"})
	if err != nil {
		return fmt.Errorf("annotate node %s: %w", node, err)
	}
	return nil
}

func (c *targetCluster) acknowledged(ctx context.Context, node, request string) (bool, error) {
	acknowledged, err := within(ctx, c.target.Times.Poll, c.target.Times.Converge, func(ctx context.Context) (bool, error) {
		live, err := c.set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return err == nil && live.Annotations[appliedDrain] == request, err
	})
	if err != nil {
		return false, fmt.Errorf("wait for the acknowledgement of node %s: %w", node, err)
	}
	return acknowledged, nil
}
