// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
)

// Shutdown tests R-MCO-3 with a real kubelet, a real logind, and a node that is powered off.
var Shutdown = kindtarget.Experiment{
	Name: "shutdown", SecondCluster: true, Run: shutdown,
	Description: "with the configuration that the machineconfig module computes, a node that is powered off ends its pods in order, with hooks and grace " +
		"periods, and without it all at once",
}

var (
	errGrace     = errors.New("pods of a node that is powered off do not end correctly")
	errNeedless  = errors.New("the pods also ended in order without the configuration, so the test proves nothing")
	errNotLoaded = errors.New("the node does not use the configuration")
)

const (
	shutdownNamespace = "sno-experiment-shutdown"
	recordFolder      = "/var/lib/sno-experiment-shutdown"
	// Seconds that the pods need to end.
	ordinaryWork, criticalWork = 4, 1
	// endScript records SIGTERM and its end, and hookScript the call of the hook.
	endScript = `say() { echo "$EPOCHREALTIME $1" >>/record/%[1]s; }
trap 'say TERM; for i in {1..%[2]d}; do sleep 0.5; say WORK; done; say END; exit 0' TERM
say START
while :; do sleep 0.1; done`
	hookScript = `echo "$EPOCHREALTIME HOOK" >>/record/%s`
	halves     = 2
)

type goingDown struct {
	*kindtarget.Env
	node string
}

func shutdown(ctx context.Context, e *kindtarget.Env) error {
	worker, err := lastWorker(ctx, e)
	if err != nil {
		return err
	}
	g := &goingDown{e, worker.Name}
	return inNamespace(ctx, e, shutdownNamespace, func() error {
		without, err := g.powerOff(ctx)
		if err != nil {
			return fmt.Errorf("without the configuration: %w", err)
		}
		with, err := g.configured(ctx)
		if err != nil {
			return fmt.Errorf("with the configuration: %w", err)
		}
		return errors.Join(without.needless(), with.inOrder(), record(e, "shutdown", figures(without, with)))
	})
}

func (g *goingDown) configured(ctx context.Context) (with ends, err error) {
	decided, err := g.decide(ctx)
	if err != nil {
		return ends{}, err
	}
	restore, err := g.configure(ctx, decided)
	if err != nil {
		return ends{}, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	return g.powerOff(ctx)
}

// powerOff runs both pods on the node, powers it off and on again, and returns the records.
func (g *goingDown) powerOff(ctx context.Context) (ends, error) {
	// logind is not started at boot, and a kubelet can only inhibit a shutdown with it.
	if _, err := g.Kind.Exec(ctx, g.node, "sh", "-c", "rm --recursive --force "+recordFolder+"; systemctl start systemd-logind"); err != nil {
		return ends{}, err
	}
	pods := shutdownPods(g.node)
	for _, pod := range pods {
		if err := g.Cluster.Client().Create(ctx, pod); err != nil {
			return ends{}, fmt.Errorf("make pod %s: %w", pod.Name, err)
		}
	}
	if err := running(ctx, g.Env, pods...); err != nil {
		return ends{}, err
	}
	for _, pod := range pods {
		if err := g.started(ctx, pod.Name); err != nil {
			return ends{}, err
		}
	}
	if err := g.offAndOn(ctx); err != nil {
		return ends{}, err
	}
	return g.read(ctx, pods)
}

func (g *goingDown) offAndOn(ctx context.Context) error {
	off, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	// The command may return no answer.
	_, asked := g.Kind.Exec(off, g.node, "systemctl", "poweroff")
	if _, err := g.Kind.Engine().Output(off, "wait", g.node); err != nil {
		return fmt.Errorf("wait until node %s is off: %w", g.node, errors.Join(err, asked))
	}
	return g.Kind.Restart(ctx, g.node)
}

func (g *goingDown) started(ctx context.Context, pod string) error {
	return until(ctx, "pod "+pod+" has started", waitTimeout, func(ctx context.Context) error {
		_, err := g.Kind.Exec(ctx, g.node, "grep", "START", recordFolder+"/"+pod)
		return err
	})
}

func (g *goingDown) read(ctx context.Context, pods []*corev1.Pod) (ends, error) {
	var both [2]ending
	for i, pod := range pods {
		text, err := g.Kind.Exec(ctx, g.node, "cat", recordFolder+"/"+pod.Name)
		if err != nil {
			return ends{}, err
		}
		if both[i], err = readEnding(text); err != nil {
			return ends{}, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		now := int64(0)
		err = g.Kind.Clientset().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil {
			return ends{}, fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return ends{both[0], both[1]}, nil
}

// shutdownPods returns an ordinary and a critical pod without controllers.
func shutdownPods(node string) []*corev1.Pod {
	ordinary := scriptPod(shutdownNamespace, "ordinary", fmt.Sprintf(endScript, "ordinary", halves*ordinaryWork), 2*ordinaryWork)
	critical := scriptPod(shutdownNamespace, "critical", fmt.Sprintf(endScript, "critical", halves*criticalWork), 2*criticalWork)
	critical.Spec.PriorityClassName = "system-node-critical"
	both := []*corev1.Pod{ordinary, critical}
	for _, pod := range both {
		pod.Spec.NodeName, pod.Spec.RestartPolicy = node, corev1.RestartPolicyNever
		kind := corev1.HostPathDirectoryOrCreate
		pod.Spec.Volumes = []corev1.Volume{{
			Name: "record", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: recordFolder, Type: &kind}},
		}}
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"bash", "-c", fmt.Sprintf(hookScript, pod.Name)}},
		}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "record", MountPath: "/record"}}
	}
	return both
}

func figures(without, with ends) []bench.Row {
	return []bench.Row{{
		What:     fmt.Sprintf("Node powered off: how a pod ends that needs %d s for it", ordinaryWork),
		Measured: with.String(), Bound: "hook, its whole grace period, critical pods after it", Compared: "without the configuration: " + without.String(),
		Held: with.inOrder() == nil,
	}}
}
