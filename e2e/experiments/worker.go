// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/kindtarget"
)

var errNoWorker = errors.New("the cluster has no worker")

func lastWorker(ctx context.Context, e *kindtarget.Env) (*corev1.Node, error) {
	names, err := e.Kind.Nodes()
	if err != nil {
		return nil, err
	}
	node, err := e.Kind.Clientset().CoreV1().Nodes().Get(ctx, names[len(names)-1], metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && isControlPlane(node) {
		return nil, errNoWorker
	}
	if err != nil {
		return nil, fmt.Errorf("find a worker: %w", err)
	}
	return node, nil
}

func isControlPlane(node *corev1.Node) bool {
	_, kubeadm := node.Labels["node-role.kubernetes.io/control-plane"]
	_, openshift := node.Labels["node-role.kubernetes.io/master"]
	return kubeadm || openshift
}

// scriptPod returns a pod that runs a script. The caller manages the namespace.
func scriptPod(namespace, name, script string, grace int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       scriptSpec(script, grace),
	}
}

func scriptSpec(script string, grace int64) corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(grace),
		Containers: []corev1.Container{{
			Name: "main", Image: kindtarget.FullImageName("cli"), Command: []string{"bash", "-c", script},
		}},
	}
}

// inNamespace runs a function with a namespace, and removes it in any case.
func inNamespace(ctx context.Context, e *kindtarget.Env, name string, run func() error) (err error) {
	namespaces := e.Kind.Clientset().CoreV1().Namespaces()
	// A former one may still be terminating.
	err = until(ctx, "namespace exists: "+name, waitTimeout, func(ctx context.Context) error {
		_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err //nolint:wrapcheck // until wraps it
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
		defer cancel()
		err = errors.Join(err, client.IgnoreNotFound(namespaces.Delete(ctx, name, metav1.DeleteOptions{})))
	}()
	return run()
}

// until waits for a condition, and returns why it was not met.
func until(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}

func running(ctx context.Context, e *kindtarget.Env, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		err := until(ctx, "pod "+pod.Name+" runs", waitTimeout, func(ctx context.Context) error {
			if err := e.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err //nolint:wrapcheck // until wraps it
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%w: it is %s", errPhase, pod.Status.Phase)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errPhase = errors.New("not running")

const logLimit = 10 * time.Second

func podLog(ctx context.Context, e *kindtarget.Env, pod *corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	result := e.Kind.Clientset().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Do(ctx)
	// The error of Raw lacks the reason.
	if err := result.Error(); err != nil {
		return "", fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	text, err := result.Raw()
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
