package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	rolePrefix = "node-role.kubernetes.io/"
	// joinScript joins as kind does, but with a token of our own, and with a kubelet that asks for its serving certificate.
	joinScript = `set -e
mkdir -p /kind/sno-join
echo 'serverTLSBootstrap: true' >/kind/sno-join/kubeletconfiguration+merge.yaml
sed -e "s/token: .*/token: $1/" -e '/^kind: JoinConfiguration/a patches:\n  directory: /kind/sno-join' /kind/kubeadm.conf >/kind/sno-join.conf
exec timeout 100 kubeadm join --config=/kind/sno-join.conf`
)

// automatic are kubeadm's bindings by which kube-controller-manager approves the client certificates of nodes on their word.
func automatic() []string {
	return []string{"kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"}
}

// withdrawAutomatic deletes them and returns what was there.
func (j *joiner) withdrawAutomatic(ctx context.Context) ([]rbacv1.ClusterRoleBinding, error) {
	bindings := j.Kind.Clientset().RbacV1().ClusterRoleBindings()
	var all []rbacv1.ClusterRoleBinding
	for _, name := range automatic() {
		live, err := bindings.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = bindings.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			return all, errors.Join(fmt.Errorf("withdraw binding %s: %w", name, err), j.restoreAutomatic(ctx, all))
		}
		all = append(all, *live)
	}
	return all, nil
}

func (j *joiner) restoreAutomatic(ctx context.Context, all []rbacv1.ClusterRoleBinding) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	for i := range all {
		again := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: all[i].Name}, RoleRef: all[i].RoleRef, Subjects: all[i].Subjects}
		if _, err := j.Kind.Clientset().RbacV1().ClusterRoleBindings().Create(ctx, again, metav1.CreateOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("restore binding %s: %w", again.Name, err))
		}
	}
	return errors.Join(errs...)
}

// bootstrapToken makes a token by which a node may ask to join, and a client of somebody who has got hold of it.
func (j *joiner) bootstrapToken(ctx context.Context) error {
	token, err := j.onControlPlane(ctx, "kubeadm", "token", "create", "--ttl=10m")
	if err != nil {
		return err
	}
	j.token = token
	j.stranger, err = j.as(rest.Config{BearerToken: token})
	return err
}

func (j *joiner) onControlPlane(ctx context.Context, command ...string) (string, error) {
	nodes, err := j.Kind.Nodes()
	if err != nil {
		return "", err
	}
	return j.Kind.Exec(ctx, nodes[0], append([]string{"env", "KUBECONFIG=/etc/kubernetes/admin.conf"}, command...)...)
}

// leave takes the node off the cluster with everything that it knows of it.
func (j *joiner) leave(ctx context.Context) error {
	if _, err := j.Kind.Exec(ctx, j.node, "kubeadm", "reset", "--force"); err != nil {
		return err
	}
	if err := j.Kind.Clientset().CoreV1().Nodes().Delete(ctx, j.node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", j.node, err)
	}
	return j.forgetFormer(ctx)
}

// forgetFormer deletes the requests by which the node joined before: those of the last hour would count against it.
func (j *joiner) forgetFormer(ctx context.Context) error {
	all, err := j.requests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for _, name := range asking(all.Items, clientSigner, j.node, nil) {
		if err := j.requests().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete a former request: %w", err)
		}
	}
	return nil
}

// kubeadmJoin returns when the kubelet has its client certificate.
func (j *joiner) kubeadmJoin(ctx context.Context) error {
	_, err := j.Kind.Exec(ctx, j.node, "sh", "-c", joinScript, "sh", j.token)
	return err
}

// restoreRoles gives the Node the roles that it had.
func (j *joiner) restoreRoles(ctx context.Context) error {
	labels := map[string]string{}
	for label, value := range j.before.Labels {
		if strings.HasPrefix(label, rolePrefix) {
			labels[label] = value
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return fmt.Errorf("restore the roles of node %s: %w", j.node, err)
	}
	if _, err := j.Kind.Clientset().CoreV1().Nodes().Patch(ctx, j.node, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("restore the roles of node %s: %w", j.node, err)
	}
	return nil
}

// itself is a client with the node's own certificate, as somebody has who broke into it.
func (j *joiner) itself(ctx context.Context) (*kubernetes.Clientset, error) {
	pair, err := j.Kind.Exec(ctx, j.node, "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	if err != nil {
		return nil, err
	}
	return j.as(rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte(pair + "\n"), KeyData: []byte(pair + "\n")}})
}
