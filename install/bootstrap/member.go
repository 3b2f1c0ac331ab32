// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/node"
)

// ErrMember is in the error of an etcd pod without the address of its member.
var ErrMember = errors.New("the static pod of etcd does not have the address of the node")

const (
	etcdPod  = "etcd-pod.yaml"
	peerPort = "2380"
)

// peerURL returns the peer URL of etcd's static pod. etcd refuses a member's data if the URL differs.
func peerURL(root, name string) (string, error) {
	file := filepath.Join(root, node.ManifestDir, etcdPod)
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("find the member of etcd: %w", err)
	}
	var pod corev1.Pod
	if err := yaml.Unmarshal(text, &pod); err != nil {
		return "", fmt.Errorf("find the member of etcd: %s: %w", file, err)
	}
	variable := "NODE_" + strings.NewReplacer("-", "_", ".", "_").Replace(name) + "_IP"
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == variable && e.Value != "" {
				return "https://" + e.Value + ":" + peerPort, nil
			}
		}
	}
	return "", fmt.Errorf("%s: environment variable %s: %w", file, variable, ErrMember)
}
