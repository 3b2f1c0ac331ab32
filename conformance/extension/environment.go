package extension

import "github.com/spf13/pflag"

// environment is what origin tells `list` about the cluster. Only the topology matters to these checks; the rest is accepted, because origin passes
// all that it knows.
type environment struct {
	topology string
}

func (e *environment) bind(flags *pflag.FlagSet) {
	flags.StringVar(&e.topology, "topology", "", "controlPlaneTopology of the cluster; checks that cannot apply there are left out")
	for _, name := range []string{"platform", "network", "network-stack", "upgrade", "architecture", "external-connectivity", "version"} {
		flags.String(name, "", "accepted, and no check depends on it")
	}
	for _, name := range []string{"optional-capability", "fact", "api-group", "feature-gate"} {
		flags.StringArray(name, nil, "accepted, and no check depends on it")
	}
}
