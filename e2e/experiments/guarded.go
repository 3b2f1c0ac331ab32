// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/topology"
)

const (
	// killEtcd removes a member at once. The kubelet would grant its grace period.
	killEtcd = `mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml &&
crictl ps --quiet --name '^etcd$' | xargs --no-run-if-empty crictl --timeout=60s stop --timeout 0`
	healEtcd = "mv /etc/kubernetes/etcd.yaml /etc/kubernetes/manifests/etcd.yaml"
	// redirect configures another API server in a kubelet. kubeadm's kubelets use the local one, which only uses the local
	// etcd.
	redirect = `sed --in-place "s,server: .*,server: $1," /etc/kubernetes/kubelet.conf && systemctl restart kubelet`

	apiServerPort = "6443"
)

// guarded is a cluster of three control-plane nodes with a guard for each etcd.
type guarded struct {
	*kind.Cluster
	nodes []string
	// kube uses the API server of another node than the victim, as does the victim's kubelet.
	kube kubernetes.Interface
	// victim is the node whose etcd is killed. It is not the leader's, so that no election is needed.
	victim string
}

func openGuarded(ctx context.Context, c *kind.Cluster) (*guarded, error) {
	g := &guarded{Cluster: c}
	var err error
	if g.nodes, err = c.Nodes(); err != nil {
		return nil, err
	}
	lease, err := c.Clientset().CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-controller-manager", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the leading controller manager: %w", err)
	}
	leader := ""
	if lease.Spec.HolderIdentity != nil {
		leader = *lease.Spec.HolderIdentity
	}
	var answeredFor string
	if answeredFor, g.victim, err = chooseNodes(g.nodes, leader); err != nil {
		return nil, err
	}
	address, err := c.Address(ctx, answeredFor)
	if err != nil {
		return nil, err
	}
	config := c.RESTConfig()
	config.Host = "https://" + net.JoinHostPort(address, apiServerPort)
	if g.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the API server of node %s: %w", answeredFor, err)
	}
	_, err = g.Exec(ctx, g.victim, "sh", "-c", redirect, "sh", config.Host)
	return g, err
}

// chooseNodes returns the leader's node, whose API server is used, and one whose etcd is killed. A holder identity is a
// node's name with a unique suffix.
func chooseNodes(nodes []string, leader string) (answeredFor, victim string, err error) {
	for _, node := range nodes {
		if len(leader) > len(node) && leader[:len(node)+1] == node+"_" {
			answeredFor = node
		} else {
			victim = node
		}
	}
	if answeredFor == "" || victim == "" {
		return "", "", fmt.Errorf("%w: nodes %v with leader %q", errGuard, nodes, leader)
	}
	return answeredFor, victim, nil
}

func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

// install installs the guard like an etcd operator that vendors the module, with what it needs: labels of nodes, an
// image, and kubeadm's certificates of etcd clients.
func (g *guarded) install(ctx context.Context) error {
	for _, node := range g.nodes {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, machineconfig.MasterRole)
		if _, err := g.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label node %s: %w", node, err)
		}
	}
	if err := g.loadImage(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: etcdguard.Namespace}}
	if _, err := g.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the namespace of etcd: %w", err)
	}
	if err := g.certificates(ctx); err != nil {
		return err
	}
	deployment, budget, err := guardObjects()
	if err != nil {
		return err
	}
	_, err = g.kube.AppsV1().Deployments(etcdguard.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
	if err == nil {
		_, err = g.kube.PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).Create(ctx, budget, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("install the guard: %w", err)
	}
	return nil
}

func (g *guarded) loadImage(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "sno-guard-")
	if err != nil {
		return fmt.Errorf("make the guard's image: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	layer, archive := filepath.Join(folder, "layer.tar"), filepath.Join(folder, "image.tar")
	if err := g.Pack(ctx, layer, "/bin/sh", "/usr/bin/curl", "/usr/bin/sleep"); err != nil {
		return err
	}
	if err := images.Write(archive, images.Image{Name: guardImage(), Tar: layer}); err != nil {
		return err
	}
	return g.Load(ctx, archive)
}

func (g *guarded) certificates(ctx context.Context) error {
	files := map[string]string{"ca.crt": "", "healthcheck-client.crt": "", "healthcheck-client.key": ""}
	for name := range files {
		text, err := g.Exec(ctx, g.nodes[0], "cat", "/etc/kubernetes/pki/etcd/"+name)
		if err != nil {
			return err
		}
		files[name] = text + "\n"
	}
	core := g.kube.CoreV1()
	_, err := core.Secrets(etcdguard.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: etcdguard.ClientSecret}, Type: corev1.SecretTypeTLS,
		StringData: map[string]string{"tls.crt": files["healthcheck-client.crt"], "tls.key": files["healthcheck-client.key"]},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = core.ConfigMaps(etcdguard.Namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: etcdguard.CABundle}, Data: map[string]string{"ca-bundle.crt": files["ca.crt"]},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("create the guard's certificates: %w", err)
	}
	return nil
}

func (g *guarded) kill(ctx context.Context) error {
	_, err := g.Exec(ctx, g.victim, "sh", "-c", killEtcd)
	return err
}

func (g *guarded) heal(ctx context.Context) error {
	_, err := g.Exec(ctx, g.victim, "sh", "-c", healEtcd)
	return err
}

// budget waits until the budget has these numbers of healthy guards and allowed disruptions.
func (g *guarded) budget(ctx context.Context, healthy, allowed int32) error {
	what := fmt.Sprintf("%d guards are ready and %d can be evicted", healthy, allowed)
	return until(ctx, what, waitTimeout, func(ctx context.Context) error {
		b, err := g.kube.PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).Get(ctx, etcdguard.GuardName, metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		s := b.Status
		if s.ObservedGeneration != b.Generation || s.CurrentHealthy != healthy || s.DisruptionsAllowed != allowed {
			return fmt.Errorf("%w: %d are ready and %d can be evicted", errGuard, s.CurrentHealthy, s.DisruptionsAllowed)
		}
		return nil
	})
}

// guards returns the pods that are not being deleted.
func (g *guarded) guards(ctx context.Context) ([]corev1.Pod, error) {
	deployment, _, err := guardObjects()
	if err != nil {
		return nil, err
	}
	of := labels.SelectorFromSet(deployment.Spec.Selector.MatchLabels).String()
	list, err := g.kube.CoreV1().Pods(etcdguard.Namespace).List(ctx, metav1.ListOptions{LabelSelector: of})
	if err != nil {
		return nil, fmt.Errorf("list the guards: %w", err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, list.Items[i])
		}
	}
	if len(pods) != len(g.nodes) {
		return nil, fmt.Errorf("%w: %d guards on %d nodes", errGuard, len(pods), len(g.nodes))
	}
	return pods, nil
}

// evict requests an eviction as a drain does. It wraps only errors that are no answers of the API server.
func (g *guarded) evict(ctx context.Context, pod *corev1.Pod) error {
	err := g.kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	if err != nil && !errors.As(err, new(apierrors.APIStatus)) {
		return fmt.Errorf("request the eviction of %s: %w", pod.Name, err)
	}
	return err //nolint:wrapcheck // an error of the API server
}
