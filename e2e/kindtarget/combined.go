// SPDX-License-Identifier: Apache-2.0

package kindtarget

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
)

// CombinedDeployment is the Deployment of config/all, with all controllers in one process.
const CombinedDeployment = framework.AllAccount

// installFolder is a copy of the repository's config folders on a node.
const installFolder = "/sno-install"

// DeployCombined applies config/all as a person does, with the node's `kubectl apply -k` and an overlay that sets the
// image, and returns when it runs.
func (e *Env) DeployCombined(ctx context.Context) error {
	nodes, err := e.Kind.Nodes()
	if err != nil {
		return err
	}
	if err := e.copyConfig(ctx, nodes[0]); err != nil {
		return err
	}
	overlay, err := overlay(e.images[programs.KubectlSNO])
	if err != nil {
		return err
	}
	const write = `mkdir --parents "$1" && cat >"$1/kustomization.yaml"`
	at := installFolder + "/overlay"
	if _, err := e.Kind.Engine().Pipe(ctx, strings.NewReader(overlay), "exec", "--interactive", nodes[0], "sh", "-c", write, "sh", at); err != nil {
		return fmt.Errorf("write an overlay: %w", err)
	}
	if _, err := e.Kind.Exec(ctx, nodes[0], "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "apply", "-k", at); err != nil {
		return fmt.Errorf("kubectl apply -k: %w", err)
	}
	return e.rolled(ctx, CombinedDeployment)
}

func (e *Env) copyConfig(ctx context.Context, node string) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	folders := []string{"config"}
	for _, module := range framework.AllModules() {
		folders = append(folders, string(module)+"/config")
	}
	for _, folder := range folders {
		into := installFolder + "/" + filepath.Dir(folder)
		if _, err := e.Kind.Exec(ctx, node, "mkdir", "--parents", into); err != nil {
			return err
		}
		if _, err := e.Kind.Engine().Output(ctx, "cp", filepath.Join(root, filepath.FromSlash(folder)), node+":"+into); err != nil {
			return fmt.Errorf("copy %s to node %s: %w", folder, node, err)
		}
	}
	return nil
}

// overlay returns a kustomization next to config/ that replaces the image that ko would build by one on the nodes.
func overlay(image string) (string, error) {
	name, tag, found := strings.Cut(image, ":")
	if !found {
		return "", fmt.Errorf("%w: kubectl-sno has no image with a tag: %q", os.ErrNotExist, image)
	}
	return fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../config/all
images:
  - name: ko://github.com/solonode/sno/cli/cmd/kubectl-sno
    newName: %q
    newTag: %q
`, name, tag), nil
}

// RemoveDeployments removes Deployments of controllers and waits until their pods are gone. Their rights and patches
// remain.
func (e *Env) RemoveDeployments(ctx context.Context, names ...string) error {
	kube := e.Cluster.Clientset()
	for _, name := range names {
		err := kube.AppsV1().Deployments(framework.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete Deployment %s: %w", name, err)
		}
	}
	var left []string
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := e.Controllers(ctx)
		if err != nil {
			return false, err
		}
		left = nil
		for i := range pods {
			for _, name := range names {
				if strings.HasPrefix(pods[i].Name, name+"-") {
					left = append(left, pods[i].Name)
				}
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s are gone: %w", strings.Join(left, ", "), err)
	}
	return nil
}

// takeover is for Leases that were not released: those of a single node expire after 270 seconds.
const takeover = 5 * time.Minute

// WaitForLeases waits until the pod of each controller holds a Lease. Without one it does not reconcile.
func (e *Env) WaitForLeases(ctx context.Context) error {
	var without []string
	err := wait.PollUntilContextTimeout(ctx, poll, takeover, true, func(ctx context.Context) (bool, error) {
		leases, err := e.Cluster.Clientset().CoordinationV1().Leases(framework.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list the Leases of the controllers: %w", err)
		}
		pods, err := e.Controllers(ctx)
		without = leaderless(pods, leases.Items)
		return len(without) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s hold their Leases: %w", strings.Join(without, ", "), err)
	}
	return nil
}

// leaderless returns the names of the pods that hold no Lease. A holder identity is a pod's name with a unique suffix.
func leaderless(pods []corev1.Pod, leases []coordinationv1.Lease) []string {
	var without []string
	for i := range pods {
		if !slices.ContainsFunc(leases, func(l coordinationv1.Lease) bool {
			return strings.HasPrefix(ptr.Deref(l.Spec.HolderIdentity, ""), pods[i].Name+"_")
		}) {
			without = append(without, pods[i].Name)
		}
	}
	return without
}

// Controllers returns the pods of the controllers.
func (e *Env) Controllers(ctx context.Context) ([]corev1.Pod, error) {
	list, err := e.Cluster.Clientset().CoreV1().Pods(framework.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=sno"})
	if err != nil {
		return nil, fmt.Errorf("list the controllers: %w", err)
	}
	return list.Items, nil
}

// ErrForbidden means that a request of a controller was forbidden.
var ErrForbidden = errors.New("a request of a controller was forbidden")

// CheckNothingForbidden checks the log of a controller's pod for forbidden requests.
func (e *Env) CheckNothingForbidden(ctx context.Context, pod string) error {
	log, err := e.Cluster.Clientset().CoreV1().Pods(framework.SystemNamespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", pod, err)
	}
	if len(log) == 0 {
		return fmt.Errorf("%w: %s has no log", os.ErrNotExist, pod)
	}
	if line := refusal(string(log)); line != "" {
		return fmt.Errorf("%w: %s: %s", ErrForbidden, pod, line)
	}
	return nil
}

// refusal returns the first line of a log about a missing right, which has this text of the API server.
func refusal(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, " is forbidden: User ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
