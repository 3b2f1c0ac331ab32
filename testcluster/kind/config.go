package kind

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// DefaultName is the name of a cluster that was given none.
const DefaultName = "sno"

// Config says what to make. The zero value is one control-plane node.
type Config struct {
	// Name begins the names of the containers, such as sno-control-plane and sno-worker2. Empty: DefaultName.
	Name string
	// ControlPlanes is 1 or 3; 0 means 1. With 3 there is a load balancer before the API servers.
	ControlPlanes, Workers int
	// ServerTLSBootstrap has kubelets ask for their serving certificates.
	ServerTLSBootstrap bool
	// KubeletConfig are further fields of the KubeletConfiguration of all nodes, as they are in its YAML.
	KubeletConfig map[string]any
	// Patches are further patches of kubeadm's configuration, as kind takes them (kubeadmConfigPatches), for all nodes.
	Patches      []string
	FeatureGates map[string]bool
	// Image of the nodes. Empty: nodeimage.Ensure.
	Image string
	// Progress is told what happens; nil for nobody.
	Progress io.Writer
}

// Docker takes these as the names of hosts.
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

// network is the name of the cluster's own network.
func (c Config) network() string { return networkOf(c.Name) }

func networkOf(name string) string { return "kind-" + name }

// forKind is the same for the library.
func (c Config) forKind() (*v1alpha4.Cluster, error) {
	kubelet, err := c.kubelet()
	if err != nil {
		return nil, err
	}
	out := &v1alpha4.Cluster{
		TypeMeta:             v1alpha4.TypeMeta{APIVersion: "kind.x-k8s.io/v1alpha4", Kind: "Cluster"},
		Name:                 c.Name,
		FeatureGates:         c.FeatureGates,
		KubeadmConfigPatches: append([]string{kubelet}, c.Patches...),
		// The network of kind is an image to pull, and nftables needs less in the image of kube-proxy.
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

// kubelet is the patch of the kubelets' configuration.
func (c Config) kubelet() (string, error) {
	fields := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		// Kubelets refuse control groups of version 1 otherwise, and many machines for CI have no other.
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
