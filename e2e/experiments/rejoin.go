// SPDX-License-Identifier: Apache-2.0

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
	// joinScript joins as kind does, but with the experiment's token, and with a kubelet that requests its serving
	// certificate.
	joinScript = `set -e
mkdir -p /kind/sno-join
echo 'serverTLSBootstrap: true' >/kind/sno-join/kubeletconfiguration+merge.yaml
sed -e "s/token: .*/token: $1/" -e '/^kind: JoinConfiguration/a patches:\n  directory: /kind/sno-join' /kind/kubeadm.conf >/kind/sno-join.conf
exec timeout 100 kubeadm join --config=/kind/sno-join.conf`
)

// automatic returns kubeadm's bindings by which kube-controller-manager approves client certificates of nodes
// unconditionally.
func automatic() []string {
	return []string{"kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"}
}

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
			return all, errors.Join(fmt.Errorf("delete binding %s: %w", name, err), j.restoreAutomatic(ctx, all))
		}
		all = append(all, *live)
	}
	return all, nil
}

func (j *joiner) restoreAutomatic(ctx context.Context, all []rbacv1.ClusterRoleBinding) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
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

// bootstrapToken creates a token with which a node may join, and a client of an attacker who has it.
func (j *joiner) bootstrapToken(ctx context.Context) error {
	token, err := j.onControlPlane(ctx, "kubeadm", "token", "create", "--ttl=10m")
	if err != nil {
		return err
	}
	j.token = token
	j.unknownClient, err = j.clientWith(rest.Config{BearerToken: token})
	return err
}

func (j *joiner) onControlPlane(ctx context.Context, command ...string) (string, error) {
	nodes, err := j.Kind.Nodes()
	if err != nil {
		return "", err
	}
	return j.Kind.Exec(ctx, nodes[0], append([]string{"env", "KUBECONFIG=/etc/kubernetes/admin.conf"}, command...)...)
}

func (j *joiner) leave(ctx context.Context) error {
	if _, err := j.Kind.Exec(ctx, j.node, "kubeadm", "reset", "--force"); err != nil {
		return err
	}
	if err := j.Kind.Clientset().CoreV1().Nodes().Delete(ctx, j.node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", j.node, err)
	}
	return j.forgetFormer(ctx)
}

// forgetFormer deletes the requests by which the node joined before. Those of the last hour would count for the tool's
// limit.
func (j *joiner) forgetFormer(ctx context.Context) error {
	all, err := j.requests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for _, name := range newRequests(all.Items, clientSigner, j.node, nil) {
		if err := j.requests().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete a former request: %w", err)
		}
	}
	return nil
}

func (j *joiner) kubeadmJoin(ctx context.Context) error {
	_, err := j.Kind.Exec(ctx, j.node, "sh", "-c", joinScript, "sh", j.token)
	return err
}

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

// itself returns a client with the node's own certificate, like an attacker on the node.
func (j *joiner) itself(ctx context.Context) (*kubernetes.Clientset, error) {
	pair, err := j.Kind.Exec(ctx, j.node, "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	if err != nil {
		return nil, err
	}
	return j.clientWith(rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte(pair + "\n"), KeyData: []byte(pair + "\n")}})
}
