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

func (r *reader) withoutPullSecret() []byte {
	if _, value := child(r.root, "pullSecret"); value != nil {
		*value = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle}
	}
	text, err := yaml.Marshal(r.root)
	if err != nil {
		return nil
	}
	return text
}
