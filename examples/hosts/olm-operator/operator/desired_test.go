// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/examples/hosts/olm-operator/apiserver"
	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode
)

func infrastructureOf(controlPlane, infrastructure configv1.TopologyMode) apiserver.State {
	return apiserver.State{Object: &unstructured.Unstructured{Object: fields{
		"kind": "Infrastructure", "status": fields{"controlPlaneTopology": string(controlPlane), "infrastructureTopology": string(infrastructure)},
	}}}
}

func testOptions(pool topology.Pool) *Options {
	options := DefaultOptions()
	options.Namespace, options.Identity, options.Pool = "example", "me", pool
	return &options
}

// outcome is a short form of what depends on the topology.
type outcome struct {
	Replicas, Unavailable, Surge int64
	Spread                       bool
	Selector                     string
	Tolerations                  int
	Budget                       string
	Lease                        string
}

func outcomeOf(t *testing.T, options *Options, a answer) outcome {
	t.Helper()
	deployment, err := options.desiredDeployment(a)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := options.desiredBudget(a)
	if err != nil {
		t.Fatal(err)
	}
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(deployment, append([]string{"spec"}, path...)...)
		return n
	}
	pod := deployment["spec"].(fields)["template"].(fields)["spec"].(fields)
	selector, _, _ := unstructured.NestedStringMap(pod, "nodeSelector")
	tolerations, _, _ := unstructured.NestedSlice(pod, "tolerations")
	durations := a.durations()
	got := outcome{
		Replicas: number("replicas"), Unavailable: number("strategy", "rollingUpdate", "maxUnavailable"), Surge: number("strategy", "rollingUpdate", "maxSurge"),
		Spread: pod["topologySpreadConstraints"] != nil, Tolerations: len(tolerations), Budget: "none",
		Lease: fmt.Sprintf("%.0f/%.0f/%.0f", durations.Lease.Seconds(), durations.Renew.Seconds(), durations.Retry.Seconds()),
	}
	for label := range selector {
		got.Selector += strings.TrimPrefix(label, "node-role.kubernetes.io/")
	}
	if budget != nil {
		n, _, _ := unstructured.NestedInt64(budget, "spec", "maxUnavailable")
		got.Budget = fmt.Sprint(n)
	}
	return got
}

func TestShapes(t *testing.T) {
	const slow, fast = "270/240/60", "137/107/26"
	for name, test := range map[string]struct {
		state apiserver.State
		pool  topology.Pool
		want  outcome
	}{
		"single":                          {infrastructureOf(sr, sr), topology.WorkerPool, outcome{1, 0, 1, false, "worker", 0, "none", slow}},
		"single, on the control plane":    {infrastructureOf(sr, ha), topology.ControlPlanePool, outcome{1, 0, 1, false, "master", 2, "none", slow}},
		"single with several workers":     {infrastructureOf(sr, ha), topology.WorkerPool, outcome{2, 1, 1, true, "worker", 0, "1", slow}},
		"highly available":                {infrastructureOf(ha, ha), topology.WorkerPool, outcome{2, 1, 1, true, "worker", 0, "1", fast}},
		"external, on the control plane":  {infrastructureOf(external, sr), topology.ControlPlanePool, outcome{1, 0, 1, false, "worker", 0, "none", fast}},
		"a value of a later release":      {infrastructureOf("Lunar", "Lunar"), topology.WorkerPool, outcome{2, 1, 1, true, "worker", 0, "1", fast}},
		"empty values":                    {infrastructureOf("", ""), topology.WorkerPool, outcome{2, 1, 1, true, "worker", 0, "1", fast}},
		"no kind Infrastructure":          {apiserver.State{NotServed: true}, topology.WorkerPool, outcome{2, 1, 1, true, "", 0, "1", fast}},
		"no such kind, on control planes": {apiserver.State{NotServed: true}, topology.ControlPlanePool, outcome{2, 1, 1, true, "", 0, "1", fast}},
	} {
		a, err := readTopology(test.state)
		if err != nil || a == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, outcomeOf(t, testOptions(test.pool), *a)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The last topology remains while there is no other answer. A cluster that is not OpenShift has an answer.
func TestKnownTopology(t *testing.T) {
	o := &operator{options: *testOptions(topology.WorkerPool), changed: make(chan struct{}, 1)}
	wrongType := apiserver.State{Object: &unstructured.Unstructured{Object: fields{"kind": "Infrastructure", "status": fields{"controlPlaneTopology": int64(1)}}}}
	for _, step := range []struct {
		name  string
		state apiserver.State
		want  string // a part of the known topology; empty for none
		wakes bool
	}{
		{"no object", apiserver.State{}, "", false},
		{"unreadable", wrongType, "", false},
		{"no kind", apiserver.State{NotServed: true}, "it is not OpenShift", true},
		{"single", infrastructureOf(sr, sr), "control plane SingleReplica, infrastructure SingleReplica", true},
		{"single again", infrastructureOf(sr, sr), "control plane SingleReplica", false},
		{"deleted", apiserver.State{}, "control plane SingleReplica", false},
		{"unreadable later", wrongType, "control plane SingleReplica", false},
		{"the kind is deleted", apiserver.State{NotServed: true}, "control plane SingleReplica", false},
		{"an unknown value", infrastructureOf("Lunar", ha), "Lunar", true},
	} {
		known := o.infrastructure(context.WithoutCancel(t.Context()), step.state)
		got := ""
		if o.known != nil {
			got = o.known.String()
		}
		if known != (step.want != "") || !strings.Contains(got, step.want) || step.want == "" && got != "" {
			t.Errorf("%s: %q; want %q", step.name, got, step.want)
		}
		if wakes := len(o.changed) > 0; wakes != step.wakes {
			t.Errorf("%s: reconciles: %t", step.name, wakes)
		}
		select {
		case <-o.changed:
		default:
		}
	}
}

func TestUpToDate(t *testing.T) {
	options := testOptions(topology.ControlPlanePool)
	a, err := readTopology(infrastructureOf(sr, sr))
	if err != nil {
		t.Fatal(err)
	}
	desired, err := options.desiredDeployment(*a)
	if err != nil {
		t.Fatal(err)
	}
	at := func(o fields, path ...string) fields {
		t.Helper()
		for _, key := range path {
			if items, ok := o[key].(list); ok {
				o = items[0].(fields)
			} else {
				o = o[key].(fields)
			}
		}
		return o
	}
	pod := []string{"spec", "template", "spec"}
	for name, test := range map[string]struct {
		change func(fields)
		want   bool
	}{
		"as applied":         {func(fields) {}, true},
		"with defaults":      {func(o fields) { at(o, "spec")["revisionHistoryLimit"] = int64(10) }, true},
		"another annotation": {func(o fields) { at(o, "metadata", "annotations")["example.com/x"] = "y" }, true},
		"one more container": {func(o fields) {
			s := at(o, pod...)
			s["containers"] = append(s["containers"].(list), fields{"name": "proxy"})
		}, true},
		"replicas":       {func(o fields) { at(o, "spec")["replicas"] = int64(5) }, false},
		"an older apply": {func(o fields) { at(o, "metadata", "annotations")[appliedAnnotation] = "" }, false},
		"no strategy":    {func(o fields) { delete(at(o, "spec"), "strategy") }, false},
		"no tolerations": {func(o fields) { delete(at(o, pod...), "tolerations") }, false},
		"one more toleration": {func(o fields) {
			s := at(o, pod...)
			s["tolerations"] = append(s["tolerations"].(list), fields{"key": "x"})
		}, false},
		"another node selector": {func(o fields) { at(o, append(pod, "nodeSelector")...)["x"] = "y" }, false},
		"another image":         {func(o fields) { at(o, append(pod, "containers")...)["image"] = "other" }, false},
		"no container":          {func(o fields) { at(o, pod...)["containers"] = list{} }, false},
	} {
		live := &unstructured.Unstructured{Object: (&unstructured.Unstructured{Object: desired}).DeepCopy().Object}
		test.change(live.Object)
		if got := upToDate(live, desired); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if upToDate(nil, desired) {
		t.Error("a missing object is up to date")
	}
}

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*Options)
		arguments []string
		want      string
	}{
		"valid":        {func(*Options) {}, nil, ""},
		"an argument":  {func(*Options) {}, []string{"x"}, `"x"`},
		"no namespace": {func(o *Options) { o.Namespace = "" }, nil, "--namespace"},
		"no image":     {func(o *Options) { o.Image = "" }, nil, "--image"},
		"another pool": {func(o *Options) { o.Pool = "infra" }, nil, "--pool=infra"},
		"no identity":  {func(o *Options) { o.Identity = "" }, nil, "--identity"},
	} {
		options := testOptions(topology.WorkerPool)
		test.change(options)
		err := options.Validate(test.arguments)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
