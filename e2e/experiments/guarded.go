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
	// killEtcd takes a member away. Its kubelet would let it live on for its grace period.
	killEtcd = `mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml &&
crictl ps --quiet --name '^etcd$' | xargs --no-run-if-empty crictl --timeout=60s stop --timeout 0`
	healEtcd = "mv /etc/kubernetes/etcd.yaml /etc/kubernetes/manifests/etcd.yaml"
	// redirect has a kubelet ask another API server. kubeadm's ask the one beside them, which has no other etcd than the one beside it.
	redirect = `sed --in-place "s,server: .*,server: $1," /etc/kubernetes/kubelet.conf && systemctl restart kubelet`

	apiServerPort = "6443"
)

// guarded is a cluster of three control-plane nodes with a guard beside each etcd.
type guarded struct {
	*kind.Cluster
	nodes []string
	// kube asks the API server of a node that is left alone, and so does the victim's kubelet.
	kube kubernetes.Interface
	// victim is the node whose etcd dies. Nothing that leads is there, so that nobody has to be elected first.
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
	var calm string
	if calm, g.victim, err = cast(g.nodes, leader); err != nil {
		return nil, err
	}
	address, err := c.Address(ctx, calm)
	if err != nil {
		return nil, err
	}
	config := c.RESTConfig()
	config.Host = "https://" + net.JoinHostPort(address, apiServerPort)
	if g.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the API server of node %s: %w", calm, err)
	}
	_, err = g.Exec(ctx, g.victim, "sh", "-c", redirect, "sh", config.Host)
	return g, err
}

// cast chooses the node that is asked, which is the leader's, and one whose etcd dies. Who leads is a node's name and something unique.
func cast(nodes []string, leader string) (calm, victim string, err error) {
	for _, node := range nodes {
		if len(leader) > len(node) && leader[:len(node)+1] == node+"_" {
			calm = node
		} else {
			victim = node
		}
	}
	if calm == "" || victim == "" {
		return "", "", fmt.Errorf("%w: no node of %v is the leader's, which is %q, or all are", errGuard, nodes, leader)
	}
	return calm, victim, nil
}

// clusterOf is a cluster whose both topologies are mode.
func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

// install puts the guard on the cluster as an etcd operator does that uses the module, with what it needs: nodes with the role, an image, and the
// certificates by which kubeadm asks its etcd.
func (g *guarded) install(ctx context.Context) error {
	for _, node := range g.nodes {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, machineconfig.MasterRole)
		if _, err := g.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("give node %s its role: %w", node, err)
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

// loadImage puts an image on the nodes with the programs that a guard runs.
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
		return fmt.Errorf("give the guard its certificates: %w", err)
	}
	return nil
}

// kill ends the etcd of the victim, as somebody does who moves the manifest of its static pod away.
func (g *guarded) kill(ctx context.Context) error {
	_, err := g.Exec(ctx, g.victim, "sh", "-c", killEtcd)
	return err
}

func (g *guarded) heal(ctx context.Context) error {
	_, err := g.Exec(ctx, g.victim, "sh", "-c", healEtcd)
	return err
}

// budget waits until the budget counts so many healthy guards, and lets so many go.
func (g *guarded) budget(ctx context.Context, healthy, mayGo int32) error {
	what := fmt.Sprintf("%d guards are ready and %d may go", healthy, mayGo)
	return until(ctx, what, patience, func(ctx context.Context) error {
		b, err := g.kube.PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).Get(ctx, etcdguard.GuardName, metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until says what for
		}
		s := b.Status
		if s.ObservedGeneration != b.Generation || s.CurrentHealthy != healthy || s.DisruptionsAllowed != mayGo {
			return fmt.Errorf("%w: %d are ready and %d may go", errGuard, s.CurrentHealthy, s.DisruptionsAllowed)
		}
		return nil
	})
}

// guards are the pods that do not end.
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

// evict asks for an eviction, as a drain does. Being refused is an answer; not being answered is not.
func (g *guarded) evict(ctx context.Context, pod *corev1.Pod) error {
	err := g.kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	if err != nil && !errors.As(err, new(apierrors.APIStatus)) {
		return fmt.Errorf("ask for the eviction of %s: %w", pod.Name, err)
	}
	return err //nolint:wrapcheck // what the API server says
}
