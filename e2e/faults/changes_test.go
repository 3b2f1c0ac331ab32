// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// change is a change of the cluster that the controllers follow.
type change struct {
	name string
	// writes is about how many writes the controllers make, for the choice of one.
	writes int
	make   func(context.Context)
	// done, if not nil, returns what is missing.
	done func(context.Context) (string, error)
	// check, if not nil, checks the writes.
	check func([]Write) []Violation
}

// flip changes the topology to the other one.
func (e *environment) flip() change {
	c := change{name: "flip to three nodes", writes: 15, make: func(ctx context.Context) {
		e.single = !e.single
		Expect(e.SetTopology(ctx, e.mode(), e.mode())).To(Succeed())
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
	return change{name: name, writes: 3, make: func(ctx context.Context) {
		if e.optedOut[module] {
			delete(e.optedOut, module)
		} else {
			e.optedOut[module] = true
		}
		e.merge(ctx, optOutObjects()[module], map[string]any{"metadata": map[string]any{"annotations": map[string]any{patch.OptOutAnnotation: to}}})
	}}
}

// clear removes all opt-outs.
func (e *environment) clear(ctx context.Context, p *process) {
	for _, module := range framework.AllModules() {
		if e.optedOut[module] {
			e.undisturbed(ctx, p, e.optOut(module))
		}
	}
}

// merge sends a merge patch of a person.
func (e *environment) merge(ctx context.Context, at patchedObject, body map[string]any) {
	GinkgoHelper()
	text := suite.Must(json.Marshal(body))
	Expect(e.Cluster.Client().Patch(ctx, at.empty(), client.RawPatch(types.MergePatchType, text), client.FieldOwner(person))).To(Succeed())
}

// drain returns requests to drain and to uncordon the worker with more pods. On a single node nothing is drained.
func (e *environment) drain(ctx context.Context) (drain, uncordon change) {
	GinkgoHelper()
	e.waitForWorkload(ctx)
	kube := e.Cluster.Clientset()
	var node string
	var evict []string
	for _, n := range suite.Must(kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/worker"})).Items {
		if pods := drains.Evictable(ctx, kube, n.Name); len(pods) >= len(evict) {
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
	return e.request(name, writes, r), e.request("uncordon", 2, DrainRequest{Node: node, Request: machineconfig.Request{Verb: machineconfig.VerbUncordon, Config: config}})
}

func (e *environment) request(name string, writes int, r DrainRequest) change {
	kube := e.Cluster.Clientset()
	return change{
		name: name, writes: writes,
		make: func(ctx context.Context) { drains.WriteRequest(ctx, kube, r.Node, r.Request) },
		done: func(ctx context.Context) (string, error) {
			node, err := kube.CoreV1().Nodes().Get(ctx, r.Node, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			if got := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; got != r.Request.String() {
				return fmt.Sprintf("node %s has acknowledged %q, want %s", r.Node, got, r.Request), nil
			}
			if want := r.Drain && r.Request.Verb == machineconfig.VerbDrain; node.Spec.Unschedulable != want {
				return fmt.Sprintf("node %s is cordoned: %t, want %t", r.Node, node.Spec.Unschedulable, want), nil
			}
			return "", nil
		},
		check: func(writes []Write) []Violation { return Answered(writes, r) },
	}
}
