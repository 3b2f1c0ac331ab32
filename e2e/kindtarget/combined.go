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

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/programs"
)

// CombinedDeployment is the Deployment of config/all: all controllers in one process.
const CombinedDeployment = harness.AllAccount

// installFolder is on a node what the repository's root is here.
const installFolder = "/sno-install"

// DeployCombined puts config/all on the cluster as a person does, with `kubectl apply -k` and an overlay that names the image, and returns when it
// runs. The node's own kubectl does it.
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

// copyConfig copies config/ of the repository and of the modules to a node.
func (e *Env) copyConfig(ctx context.Context, node string) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	folders := []string{"config"}
	for _, module := range harness.AllModules() {
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

// overlay is a kustomization beside config/ that names the image that is on the nodes in the place of the one that ko would build.
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

// RemoveDeployments takes Deployments of ours off and returns when none of their pods is left. Their rights and what they patched stay.
func (e *Env) RemoveDeployments(ctx context.Context, names ...string) error {
	kube := e.Cluster.Clientset()
	for _, name := range names {
		err := kube.AppsV1().Deployments(harness.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("withdraw %s: %w", name, err)
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

// takeover is for Leases that nobody gave up: those of one node run out after 270 seconds.
const takeover = 5 * time.Minute

// WaitForLeases waits until each of our controllers' pods holds a Lease. One that has none answers nobody.
func (e *Env) WaitForLeases(ctx context.Context) error {
	var without []string
	err := wait.PollUntilContextTimeout(ctx, poll, takeover, true, func(ctx context.Context) (bool, error) {
		leases, err := e.Cluster.Clientset().CoordinationV1().Leases(harness.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list the Leases of our controllers: %w", err)
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

// leaderless are the names of the pods that hold no Lease. Who holds one is a pod's name and something unique.
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

// Controllers are the pods of our controllers.
func (e *Env) Controllers(ctx context.Context) ([]corev1.Pod, error) {
	list, err := e.Cluster.Clientset().CoreV1().Pods(harness.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=sno"})
	if err != nil {
		return nil, fmt.Errorf("list our controllers: %w", err)
	}
	return list.Items, nil
}

// ErrForbidden says that a controller asked for something that it has no right to.
var ErrForbidden = errors.New("a controller was refused something")

// CheckNothingForbidden reads the log of a controller's pod for what the API server refused to it.
func (e *Env) CheckNothingForbidden(ctx context.Context, pod string) error {
	log, err := e.Cluster.Clientset().CoreV1().Pods(harness.SystemNamespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", pod, err)
	}
	if len(log) == 0 {
		return fmt.Errorf("%w: %s has no log to read it from", os.ErrNotExist, pod)
	}
	if line := refusal(string(log)); line != "" {
		return fmt.Errorf("%w: %s: %s", ErrForbidden, pod, line)
	}
	return nil
}

// refusal is the first line of a log that tells of a request that was refused for want of a right, which the API server words so.
func refusal(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, " is forbidden: User ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
