// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/snapshot"
)

// ErrNoData is in the error of a node whose etcd has neither data nor a snapshot.
var ErrNoData = errors.New("etcd has no data and there is no snapshot: an empty etcd would be another cluster; install the node again")

// ErrDamaged is in the error of a node whose snapshot cannot be used.
var ErrDamaged = errors.New("etcd has no data, and its only snapshot is damaged: install the node again")

// Restore restores etcd's data from the snapshot of the bootstrap phase, before the kubelet starts etcd (U-INS-7).
// Existing data is not changed.
func Restore(_ context.Context, root string) error {
	data := filepath.Join(root, node.EtcdData)
	done, err := snapshot.HasMember(data)
	if err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	o := snapshot.Options{Path: filepath.Join(root, node.Snapshot), DataDir: data}
	if !done {
		if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", o.Path, ErrNoData)
		}
		s, err := node.Read(filepath.Join(root, node.BootstrapSettings))
		if err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
		if o.Name, o.PeerURL, err = member(root, s.Name); err != nil {
			return err
		}
	}
	err = snapshot.Restore(o)
	if errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNoSnapshot) {
		// The control plane that could save it again no longer runs.
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err //nolint:wrapcheck // it names the file
}

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
