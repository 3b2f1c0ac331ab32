// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"go.yaml.in/yaml/v3"

	"github.com/solonode/sno/topology"
)

// Install returns the input of the decision about the topology.
func (c *Config) Install() topology.Install {
	install := topology.Install{Platform: c.Platform}
	if c.ControlPlane != nil {
		install.ControlPlane = c.ControlPlane.Replicas
	}
	for _, pool := range c.Compute {
		install.Compute = append(install.Compute, topology.ComputePool{Replicas: pool.Replicas})
	}
	return install
}

// forOperators returns the file without the pull secret and with default networks: etcd's operator requires them.
func (r *reader) forOperators(n Networking) []byte {
	if _, value := child(r.root, "pullSecret"); value != nil {
		*value = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle}
	}
	type network struct {
		CIDR       string `yaml:"cidr"`
		HostPrefix int32  `yaml:"hostPrefix,omitempty"`
	}
	var machines, pods []network
	var services []string
	for _, p := range n.MachineNetwork {
		machines = append(machines, network{CIDR: p.String()})
	}
	for _, p := range n.ClusterNetwork {
		pods = append(pods, network{p.CIDR.String(), p.HostPrefix})
	}
	for _, p := range n.ServiceNetwork {
		services = append(services, p.String())
	}
	_, section := child(r.root, "networking")
	if section != nil && section.Kind == yaml.AliasNode {
		section = section.Alias
	}
	if section == nil || section.Kind != yaml.MappingNode {
		section = &yaml.Node{Kind: yaml.MappingNode}
		r.root.Content = append(r.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "networking"}, section)
	}
	for _, field := range []struct {
		name  string
		value any
	}{{"networkType", n.NetworkType}, {"machineNetwork", machines}, {"clusterNetwork", pods}, {"serviceNetwork", services}} {
		if _, value := child(section, field.name); value != nil && !empty(value) {
			continue
		}
		value := &yaml.Node{}
		if value.Encode(field.value) == nil {
			section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: field.name}, value)
		}
	}
	text, err := yaml.Marshal(r.root)
	if err != nil {
		return nil
	}
	return text
}
