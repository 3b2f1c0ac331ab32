// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	kubectl "k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	drainedNode = "drained"
	drainedPods = 100
	// drainRounds is the number of drains: the median of five of the same programs was anywhere from 0.94 to 1.32 of
	// kubectl's.
	drainRounds = 15
	// drainRatio limits the time of a drain by request relative to kubectl drain.
	drainRatio = 1.25
)

// drainTimes measures the completion of a request on one node, and drains on several nodes in turn with kubectl drain.
func drainTimes(ctx context.Context, o Options) ([]Row, error) {
	s, err := framework.Start(ctx, framework.Config{Scenario: "compact", Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if _, err := s.RunController(ctx, framework.MachineConfig); err != nil {
		return nil, err
	}
	if _, err := s.WaitReason(ctx, framework.MachineConfig, waitTimeout, "AsExpected"); err != nil {
		return nil, err
	}
	if err := s.Cluster.AddNode(ctx, embedded.NodeSpec{Name: drainedNode, Roles: []string{"worker"}}); err != nil {
		return nil, err
	}
	kube := s.Cluster.Clientset()
	ours, theirs, err := compareWithKubectl(ctx, o, kube)
	if err != nil {
		return nil, err
	}
	single := configv1.SingleReplicaTopologyMode
	if err := s.SetTopology(ctx, single, single); err != nil {
		return nil, err
	}
	completions, err := completionTimes(ctx, o, kube)
	if err != nil {
		return nil, err
	}
	if err := eventsSent(ctx, s, framework.MachineConfig); err != nil {
		return nil, err
	}
	rest, err := atRest(ctx, Options{IdleTime: o.IdleTime / 5, Progress: o.Progress}, s, framework.MachineConfig.Controller().Name, framework.MachineConfig.User())
	if err != nil {
		return nil, err
	}
	ratio := float64(percentile(ours, 50)) / float64(percentile(theirs, 50))
	return append([]Row{{
		What:     fmt.Sprintf("Drain request to its completion on one node, %d requests", len(completions)),
		Measured: fmt.Sprintf("p50 %s, p99 %s, max %s", millis(percentile(completions, 50)), millis(percentile(completions, 99)), millis(completions[len(completions)-1])),
		Bound:    "p99 < 1 s", Compared: "stock daemon: no request, it skips the drain by itself", Held: percentile(completions, 99) < time.Second,
	}, {
		What:     fmt.Sprintf("Drain of a node with %d pods, request to completion, in turn with kubectl drain, %d times each", drainedPods, len(ours)),
		Measured: fmt.Sprintf("p50 %s against %s, ratio %.2f", millis(percentile(ours, 50)), millis(percentile(theirs, 50)), ratio),
		Bound:    fmt.Sprintf("ratio < %.2f", drainRatio), Compared: "kubectl drain", Held: ratio < drainRatio,
	}}, rest...), nil
}

// eventsSent waits until the controller has written nothing for a while: it sends an event after the write that the
// event is about.
func eventsSent(ctx context.Context, s *framework.ScenarioCluster, module framework.Module) error {
	const while = 2 * time.Second
	offset, err := s.Cluster.AuditOffset(ctx)
	if err != nil {
		return err
	}
	since := time.Now()
	err = wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(context.Context) (bool, error) {
		events, next, err := s.Cluster.AuditEvents(ctx, offset, embedded.AuditFilter{User: module.User(), WritesOnly: true})
		if offset = next; len(events) > 0 {
			since = time.Now()
		}
		return time.Since(since) > while, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s writes nothing: %w", module.Controller().Name, err)
	}
	return nil
}

// completionTimes requests drains and uncordons in turn, and measures the drains.
func completionTimes(ctx context.Context, o Options, kube kubernetes.Interface) ([]time.Duration, error) {
	var times []time.Duration
	for i := range o.TopologyChanges {
		took, err := completionTime(ctx, kube, fmt.Sprint("answer-", i))
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	return times, nil
}

func completionTime(ctx context.Context, kube kubernetes.Interface, config string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	var took time.Duration
	for _, verb := range []machineconfig.Verb{machineconfig.VerbDrain, machineconfig.VerbUncordon} {
		request := machineconfig.Request{Verb: verb, Config: config}
		began := time.Now()
		if err := drains.WriteRequest(ctx, kube, drainedNode, request); err != nil {
			return 0, err
		}
		if err := drains.WaitForCompletion(ctx, kube, drainedNode, request); err != nil {
			return 0, err
		}
		if verb == machineconfig.VerbDrain {
			took = time.Since(began)
		}
	}
	return took, nil
}

// compareWithKubectl drains the same node with the same pods by request and by kubectl's library, in turn. The pods can
// run nowhere else, so they return when it is uncordoned.
func compareWithKubectl(ctx context.Context, o Options, kube kubernetes.Interface) (ours, theirs []time.Duration, err error) {
	logf(o.Progress, "Draining a node %d times", 2*drainRounds)
	labels := map[string]string{"app": drainedNode}
	pod := newPod("", "").Spec
	pod.NodeSelector = map[string]string{corev1.LabelHostname: drainedNode}
	pod.TerminationGracePeriodSeconds = ptr.To[int64](0)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: drainedNode}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](drainedPods), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}}
	if _, err := kube.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return nil, nil, fmt.Errorf("create the pods to drain: %w", err)
	}
	for i := range drainRounds {
		if err := drainedRuns(ctx, kube); err != nil {
			return nil, nil, err
		}
		took, err := completionTime(ctx, kube, fmt.Sprint("drain-", i))
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, took)
		if err := drainedRuns(ctx, kube); err != nil {
			return nil, nil, err
		}
		if took, err = kubectlDrain(ctx, kube); err != nil {
			return nil, nil, err
		}
		theirs = append(theirs, took)
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	return ours, theirs, nil
}

func drainedRuns(ctx context.Context, kube kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + drainedNode, FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == drainedPods, err
	})
	if err != nil {
		return fmt.Errorf("wait for the pods to drain: %w", err)
	}
	return nil
}

// kubectlDrain runs kubectl drain and kubectl uncordon, and measures the former.
func kubectlDrain(ctx context.Context, kube kubernetes.Interface) (time.Duration, error) {
	helper := &kubectl.Helper{
		Ctx: ctx, Client: kube, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Timeout: waitTimeout, EvictErrorRetryDelay: 5 * time.Second, Out: io.Discard, ErrOut: io.Discard,
	}
	began := time.Now()
	node, err := kube.CoreV1().Nodes().Get(ctx, drainedNode, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read the node to drain: %w", err)
	}
	if err := kubectl.RunCordonOrUncordon(helper, node, true); err != nil {
		return 0, err
	}
	if err := kubectl.RunNodeDrain(helper, drainedNode); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, kubectl.RunCordonOrUncordon(helper, node, false)
}
