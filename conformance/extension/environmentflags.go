// SPDX-License-Identifier: Apache-2.0

package extension

import "github.com/spf13/pflag"

// environmentFlags are the flags with which origin describes the cluster. Only the topology has an effect on these
// tests.
type environmentFlags struct {
	topology string
}

func (e *environmentFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&e.topology, "topology", "", "controlPlaneTopology of the cluster; checks that cannot apply to it are left out")
	for _, name := range []string{"platform", "network", "network-stack", "upgrade", "architecture", "external-connectivity", "version"} {
		flags.String(name, "", "accepted without an effect")
	}
	for _, name := range []string{"optional-capability", "fact", "api-group", "feature-gate"} {
		flags.StringArray(name, nil, "accepted without an effect")
	}
}
