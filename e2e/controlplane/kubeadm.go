// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// Kubeadm is `kubeadm init` without its add-ons, which a control plane does not need to be ready.
func Kubeadm(version string) Method {
	return Method{
		Name: "kubeadm",
		Prepare: func(ctx context.Context, n *Node) error {
			config, err := kubeadmConfig(n, version)
			if err != nil {
				return err
			}
			return n.Put(ctx, nodemachine.File{Path: "etc/kubernetes/kubeadm.yaml", Mode: 0o600, Content: config})
		},
		Begin: func(ctx context.Context, n *Node) error {
			_, err := n.Exec(ctx, "kubeadm", "init", "--config=/etc/kubernetes/kubeadm.yaml", "--ignore-preflight-errors=all")
			return err
		},
		Connect: func(ctx context.Context, n *Node) error {
			text, err := n.Exec(ctx, "cat", "/etc/kubernetes/admin.conf")
			if err != nil {
				return err
			}
			n.Admin, err = clientcmd.RESTConfigFromKubeConfig([]byte(text))
			if err != nil {
				return fmt.Errorf("read the kubeconfig of kubeadm: %w", err)
			}
			return nil
		},
		Join: func(context.Context, *Node) error { return nil },
		Etcd: etcdFiles{
			authority:   "/etc/kubernetes/pki/etcd/ca.crt",
			certificate: "/etc/kubernetes/pki/apiserver-etcd-client.crt", key: "/etc/kubernetes/pki/apiserver-etcd-client.key",
		},
	}
}

func kubeadmConfig(n *Node, version string) ([]byte, error) {
	config, err := kubelet(nil)
	if err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer("NAME", n.Name(), "ADDRESS", n.Address(), "VERSION", version, "PODS", podNetwork, "SERVICES", serviceNetwork).Replace(
		`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ADDRESS}
nodeRegistration: {name: NAME, taints: []}
skipPhases: [addon]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
networking: {podSubnet: PODS, serviceSubnet: SERVICES}
---
`) + string(config)), nil
}
