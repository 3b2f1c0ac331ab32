// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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

// advertised matches the peer URL in the command of a release's pod.
var advertised = regexp.MustCompile(`--initial-advertise-peer-urls=(https://[^\s$]+)`)

// member returns the name and the peer URL of etcd's static pod on a node. etcd refuses a member's data if one differs.
// A release's pod has both, and that of sno-render the address in a variable of the node.
func member(root, nodeName string) (name, peer string, err error) {
	file := filepath.Join(root, node.ManifestDir, etcdPod)
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", fmt.Errorf("find the member of etcd: %w", err)
	}
	var pod corev1.Pod
	if err := yaml.Unmarshal(text, &pod); err != nil {
		return "", "", fmt.Errorf("find the member of etcd: %s: %w", file, err)
	}
	variable := "NODE_" + strings.NewReplacer("-", "_", ".", "_").Replace(nodeName) + "_IP"
	name = nodeName
	for _, c := range pod.Spec.Containers {
		if match := advertised.FindStringSubmatch(strings.Join(append(c.Command, c.Args...), " ")); match != nil {
			peer = match[1]
		}
		for _, e := range c.Env {
			switch {
			case e.Name == variable && e.Value != "":
				peer = "https://" + e.Value + ":" + peerPort
			case e.Name == "ETCD_NAME" && e.Value != "" && c.Name == "etcd":
				name = e.Value
			}
		}
	}
	if u, err := url.Parse(peer); err != nil || u.Port() != peerPort {
		return "", "", fmt.Errorf("%s: environment variable %s, or --initial-advertise-peer-urls: %w", file, variable, ErrMember)
	}
	return name, peer, nil
}
