// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/machineconfig"
)

// Drain tests R-MCO-2 with real pods: no drain on a single control-plane node.
var Drain = kindtarget.Experiment{
	Name: "drain", SecondCluster: true, Run: drain, Scenario: "none-sno-day2-workers",
	Description: "nodes of a single control plane that request a drain get an immediate answer and keep their pods; with a highly available control plane " +
		"a worker is drained",
}

var (
	errEvicted = errors.New("a node of a single control plane was drained")
	errKept    = errors.New("a worker of a highly available control plane was not drained")
)

const (
	drainNamespace = "sno-experiment-drain"
	steady         = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
	// workers is the number of pods on the worker; one more is on the control plane.
	workers  = 2
	promptly = 10 * time.Second
)

type drainer struct {
	*kindtarget.Env
	control, worker string
}

func drain(ctx context.Context, e *kindtarget.Env) error {
	worker, err := lastWorker(ctx, e)
	if err != nil {
		return err
	}
	names, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	d := &drainer{Env: e, control: names[0], worker: worker.Name}
	return inNamespace(ctx, e, drainNamespace, func() error {
		if err := d.fill(ctx); err != nil {
			return err
		}
		var answers []time.Duration
		for _, node := range []string{d.control, d.worker} {
			took, err := d.checkSkipped(ctx, node)
			if err != nil {
				return err
			}
			answers = append(answers, took)
		}
		took, err := d.checkDrained(ctx)
		if err != nil {
			return err
		}
		return record(e, "drain", []bench.Row{
			within("Drain request on a single control plane to its completion, no pod evicted", slices.Max(answers), promptly),
			within(fmt.Sprintf("Drain of a worker with a highly available control plane and %d pods, request to completion", workers), took, waitTimeout),
		})
	})
}

// fill creates an unmanaged pod on the control plane, and pods that prefer the worker but may run elsewhere.
func (d *drainer) fill(ctx context.Context) error {
	lone := scriptPod(drainNamespace, "lone", steady, 1)
	lone.Spec.NodeName = d.control
	for _, object := range []struct {
		name   string
		create func() error
	}{
		{"lone", func() error { return d.Cluster.Client().Create(ctx, lone) }},
		{"movable", func() error { return d.Cluster.Client().Create(ctx, d.movable()) }},
	} {
		if err := object.create(); err != nil {
			return fmt.Errorf("make %s: %w", object.name, err)
		}
	}
	return until(ctx, "pods run on both nodes", waitTimeout, func(ctx context.Context) error {
		for node, want := range map[string]int{d.control: 1, d.worker: workers} {
			pods, err := d.podsOn(ctx, node)
			if err != nil {
				return err
			}
			if len(pods) != want {
				return fmt.Errorf("%w: want %d pods on node %s, have %d", errPhase, want, node, len(pods))
			}
		}
		return nil
	})
}

func (d *drainer) movable() *appsv1.Deployment {
	of := map[string]string{"app": "movable"}
	spec := scriptSpec(steady, 1)
	spec.Tolerations = []corev1.Toleration{
		{Key: machineconfig.ControlPlaneRole, Operator: corev1.TolerationOpExists}, {Key: machineconfig.MasterRole, Operator: corev1.TolerationOpExists},
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{d.worker},
		}}},
	}}}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: drainNamespace, Name: "movable"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](workers), Selector: &metav1.LabelSelector{MatchLabels: of},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: of}, Spec: spec},
		},
	}
}

// podsOn returns the names, by UID, of the pods on a node that run and are not being deleted.
func (d *drainer) podsOn(ctx context.Context, node string) (map[types.UID]string, error) {
	list, err := d.Kind.Clientset().CoreV1().Pods(drainNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list the pods on node %s: %w", node, err)
	}
	pods := map[types.UID]string{}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			pods[pod.UID] = pod.Name
		}
	}
	return pods, nil
}

func (d *drainer) request(ctx context.Context, node string, verb machineconfig.Verb, config string) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	r := machineconfig.Request{Verb: verb, Config: config}
	if err := drains.WriteRequest(ctx, d.Kind.Clientset(), node, r); err != nil {
		return err
	}
	return drains.WaitForCompletion(ctx, d.Kind.Clientset(), node, r)
}

func (d *drainer) isCordoned(ctx context.Context, node string) (bool, error) {
	live, err := d.Kind.Clientset().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read node %s: %w", node, err)
	}
	return live.Spec.Unschedulable, nil
}

// checkSkipped requests a drain that must do nothing: the same pods run, and the node stays schedulable.
func (d *drainer) checkSkipped(ctx context.Context, node string) (time.Duration, error) {
	before, err := d.podsOn(ctx, node)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := d.request(ctx, node, machineconfig.VerbDrain, "rendered-single"); err != nil {
		return 0, err
	}
	took := time.Since(began)
	after, err := d.podsOn(ctx, node)
	if err != nil {
		return 0, err
	}
	cordoned, err := d.isCordoned(ctx, node)
	if err != nil {
		return 0, err
	}
	if !maps.Equal(before, after) || cordoned {
		return 0, fmt.Errorf("%w: node %s had %v and has %v, cordoned: %t", errEvicted, node, before, after, cordoned)
	}
	return took, d.request(ctx, node, machineconfig.VerbUncordon, "rendered-single")
}

// checkDrained makes the control plane highly available and requests a drain, which must evict the pods of the worker.
func (d *drainer) checkDrained(ctx context.Context) (took time.Duration, err error) {
	before, err := d.podsOn(ctx, d.worker)
	if err != nil {
		return 0, err
	}
	if err := d.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.restore(ctx)) }()
	if took, err = d.drained(ctx); err != nil {
		return 0, err
	}
	after, err := d.podsOn(ctx, d.worker)
	if err != nil {
		return 0, err
	}
	if len(after) > 0 || len(before) != workers {
		return 0, fmt.Errorf("%w: it had %v and has %v", errKept, before, after)
	}
	return took, until(ctx, "the pods of the worker run elsewhere", waitTimeout, func(ctx context.Context) error {
		elsewhere, err := d.podsOn(ctx, d.control)
		others, listed := d.Kind.Nodes()
		for _, node := range others {
			if node != d.control && node != d.worker && err == nil {
				var more map[types.UID]string
				more, err = d.podsOn(ctx, node)
				maps.Copy(elsewhere, more)
			}
		}
		if err := errors.Join(err, listed); err != nil {
			return err
		}
		if want := workers + 1; len(elsewhere) != want {
			return fmt.Errorf("%w: %d of %d", errPhase, len(elsewhere), want)
		}
		return nil
	})
}

// drained repeats the request until the controller has observed the topology. Earlier requests complete without a
// drain.
func (d *drainer) drained(ctx context.Context) (time.Duration, error) {
	var took time.Duration
	times := 0
	err := until(ctx, "a worker is drained", waitTimeout, func(ctx context.Context) error {
		began := time.Now()
		times++
		if err := d.request(ctx, d.worker, machineconfig.VerbDrain, fmt.Sprintf("rendered-%d", times)); err != nil {
			return err
		}
		took = time.Since(began)
		cordoned, err := d.isCordoned(ctx, d.worker)
		if err != nil {
			return err
		}
		if !cordoned {
			return errKept
		}
		return nil
	})
	return took, err
}

func (d *drainer) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
	defer cancel()
	uncordoned := d.request(ctx, d.worker, machineconfig.VerbUncordon, "rendered-done")
	return errors.Join(uncordoned, d.SetTopology(ctx, d.Scenario.ControlPlaneTopology, d.Scenario.InfrastructureTopology))
}
