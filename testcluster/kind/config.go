// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// DefaultName is used for a cluster without a name.
const DefaultName = "sno"

// Config describes a cluster. The zero value is one control-plane node.
type Config struct {
	// Name is the prefix of the containers' names, such as sno-control-plane and sno-worker2. Empty: DefaultName.
	Name string
	// ControlPlanes is 1 or 3; 0 means 1. With 3 the API servers have a load balancer.
	ControlPlanes, Workers int
	// ServerTLSBootstrap makes kubelets request their serving certificates.
	ServerTLSBootstrap bool
	// KubeletConfig has additional fields of the KubeletConfiguration of all nodes, as in its YAML.
	KubeletConfig map[string]any
	// Patches are additional patches of kubeadm's configuration (kind's kubeadmConfigPatches), for all nodes.
	Patches      []string
	FeatureGates map[string]bool
	// Image is that of the nodes. Empty: nodeimage.Ensure.
	Image    string
	Progress io.Writer
}

var nameSyntax = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)

func (c Config) defaulted() (Config, error) {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if !nameSyntax.MatchString(c.Name) {
		return c, fmt.Errorf("%w: the name %q must be lower-case letters, digits and dashes, at most 41", ErrConfig, c.Name)
	}
	if c.ControlPlanes == 0 {
		c.ControlPlanes = 1
	}
	if c.ControlPlanes != 1 && c.ControlPlanes != 3 {
		return c, fmt.Errorf("%w: %d control-plane nodes: etcd needs 1 or 3", ErrConfig, c.ControlPlanes)
	}
	if c.Workers < 0 {
		return c, fmt.Errorf("%w: %d workers", ErrConfig, c.Workers)
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

func (c Config) network() string { return networkOf(c.Name) }

func networkOf(name string) string { return "kind-" + name }

func (c Config) forKind() (*v1alpha4.Cluster, error) {
	kubelet, err := c.kubelet()
	if err != nil {
		return nil, err
	}
	out := &v1alpha4.Cluster{
		TypeMeta:             v1alpha4.TypeMeta{APIVersion: "kind.x-k8s.io/v1alpha4", Kind: "Cluster"},
		Name:                 c.Name,
		FeatureGates:         c.FeatureGates,
		KubeadmConfigPatches: append([]string{kubelet, schedulerRetries}, c.Patches...),
		// kind's network plugin would be an image to pull, and nftables needs fewer programs in the image of kube-proxy.
		Networking: v1alpha4.Networking{DisableDefaultCNI: true, KubeProxyMode: "nftables", PodSubnet: podSubnet},
	}
	for range c.ControlPlanes {
		out.Nodes = append(out.Nodes, v1alpha4.Node{Role: v1alpha4.ControlPlaneRole, Image: c.Image})
	}
	for range c.Workers {
		out.Nodes = append(out.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: c.Image})
	}
	return out, nil
}

// schedulerRetries limits the time for which the scheduler of 1.35 leaves a pod Pending after the one is deleted whose
// anti-affinity excluded it (U-TOP-16): 30 s instead of 5 minutes.
const schedulerRetries = `kind: ClusterConfiguration
scheduler:
  extraArgs:
    pod-max-in-unschedulable-pods-duration: 1s`

func (c Config) kubelet() (string, error) {
	fields := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		// The default refuses control groups of version 1, and many CI machines have no others.
		"failCgroupV1": false,
	}
	if c.ServerTLSBootstrap {
		fields["serverTLSBootstrap"] = true
	}
	for name, value := range c.KubeletConfig {
		fields[name] = value
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("%w: KubeletConfig: %w", ErrConfig, err)
	}
	return strings.TrimSpace(string(text)), nil
}
