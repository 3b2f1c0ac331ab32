// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// change is a change of the cluster that the controllers follow.
type change struct {
	name string
	// writes is about how many writes the controllers make, for the choice of one.
	writes int
	make   func(context.Context) error
	// done, if not nil, returns what is missing.
	done func(context.Context) (string, error)
	// check, if not nil, checks the writes.
	check func([]Write) []Violation
}

// flip changes the topology to the other one.
func (e *environment) flip() change {
	c := change{name: "flip to three nodes", writes: 15, make: func(ctx context.Context) error {
		e.single = !e.single
		return e.SetTopology(ctx, e.mode(), e.mode())
	}}
	if !e.single {
		c.name = "flip to one node"
	}
	return c
}

// optOut sets or removes the annotation of a module, which hands its objects over.
func (e *environment) optOut(module framework.Module) change {
	to := any(string(module))
	name := "hand-over by opt-out of " + string(module)
	if e.optedOut[module] {
		to, name = nil, "hand-over back to "+string(module)
	}
	return change{name: name, writes: 3, make: func(ctx context.Context) error {
		if e.optedOut[module] {
			delete(e.optedOut, module)
		} else {
			e.optedOut[module] = true
		}
		return e.merge(ctx, optOutObjects()[module], person, map[string]any{"metadata": map[string]any{"annotations": map[string]any{patch.OptOutAnnotation: to}}})
	}}
}

// merge sends a merge patch of a person.
func (e *environment) merge(ctx context.Context, at patchedObject, manager string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a merge patch: %w", err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(at.gvk)
	live.SetNamespace(at.Namespace)
	live.SetName(at.Name)
	if err := e.Cluster.Client().Patch(ctx, live, client.RawPatch(types.MergePatchType, text), client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("write %s: %w", at, err)
	}
	return nil
}

// drain returns requests to drain and to uncordon the worker with more pods. On a single node nothing is drained.
func (e *environment) drain(ctx context.Context) (drain, uncordon change, err error) {
	if err := e.waitForWorkload(ctx); err != nil {
		return drain, uncordon, err
	}
	kube := e.Cluster.Clientset()
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/worker"})
	if err != nil {
		return drain, uncordon, fmt.Errorf("list the workers: %w", err)
	}
	var node string
	var evict []string
	for _, n := range nodes.Items {
		pods, err := drains.Evictable(ctx, kube, n.Name)
		if err != nil {
			return drain, uncordon, err
		}
		if len(pods) >= len(evict) {
			node, evict = n.Name, pods
		}
	}
	e.requests++
	config := fmt.Sprintf("soak-%d", e.requests)
	r := DrainRequest{Node: node, Request: machineconfig.Request{Verb: machineconfig.VerbDrain, Config: config}, Evict: evict, Drain: true}
	name, writes := "drain", 9
	if e.single {
		r.Evict, r.Drain, name, writes = nil, false, "drain that is not needed", 1
	}
	drain = e.request(name, writes, r)
	uncordon = e.request("uncordon", 2, DrainRequest{Node: node, Request: machineconfig.Request{Verb: machineconfig.VerbUncordon, Config: config}})
	return drain, uncordon, nil
}

func (e *environment) request(name string, writes int, r DrainRequest) change {
	kube := e.Cluster.Clientset()
	return change{
		name: name, writes: writes,
		make: func(ctx context.Context) error { return drains.WriteRequest(ctx, kube, r.Node, r.Request) },
		done: func(ctx context.Context) (string, error) {
			node, err := kube.CoreV1().Nodes().Get(ctx, r.Node, metav1.GetOptions{})
			if err != nil {
				return "", fmt.Errorf("read node %s: %w", r.Node, err)
			}
			if got := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; got != r.Request.String() {
				return fmt.Sprintf("node %s has acknowledged %q, want %s", r.Node, got, r.Request), nil
			}
			if want := r.Drain && r.Request.Verb == machineconfig.VerbDrain; node.Spec.Unschedulable != want {
				return fmt.Sprintf("node %s is cordoned: %t, want %t", r.Node, node.Spec.Unschedulable, want), nil
			}
			return "", nil
		},
		check: func(writes []Write) []Violation { return Answered(writes, ours, r) },
	}
}
