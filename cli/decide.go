package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"

	"github.com/solonode/sno/topology"
)

// errPlatform is returned for a platform that nobody installs on.
var errPlatform = errors.New("unknown platform")

// formerPolicy is what topology.PolicyEnhancement was called; accepted, with a warning, for one release.
const formerPolicy = "seed"

// platforms are those that a person may name.
func platforms() []string {
	return []string{
		string(configv1.NonePlatformType), string(configv1.BareMetalPlatformType), string(configv1.AWSPlatformType), string(configv1.AzurePlatformType),
		string(configv1.GCPPlatformType), string(configv1.IBMCloudPlatformType), string(configv1.PowerVSPlatformType), string(configv1.OpenStackPlatformType),
		string(configv1.VSpherePlatformType), string(configv1.NutanixPlatformType), string(configv1.KubevirtPlatformType), string(configv1.OvirtPlatformType),
		string(configv1.ExternalPlatformType), string(configv1.LibvirtPlatformType), string(configv1.AlibabaCloudPlatformType),
		string(configv1.EquinixMetalPlatformType),
	}
}

func platform(name string) (configv1.PlatformType, error) {
	for _, known := range platforms() {
		if strings.EqualFold(name, known) {
			return configv1.PlatformType(known), nil
		}
	}
	return "", fmt.Errorf("%w %q; there are: %s", errPlatform, name, strings.Join(platforms(), ", "))
}

func newDecide(p *program) *cobra.Command {
	var named, policy string
	var controlPlane, arbiters, workers int64
	var all bool
	command := &cobra.Command{
		Use:   "decide",
		Short: "Say what an installer would decide",
		Long: `Say what an installer decides before the first node exists: the topologies, where ingress runs, and whether it needs a load balancer.

There are three policies: enhancement, the table of the proposal that sno implements, and the default; worker-count, the rule that
shipped first; and default-placement, the rule that followed. Workers that are added after the installation change nothing.`,
		Example: examples(`
			# One control-plane node and two workers on no platform
			kubectl sno topology decide --platform None --control-plane-replicas 1 --workers 2
			# The same by the rule that shipped first
			kubectl sno topology decide --platform None --control-plane-replicas 1 --workers 2 --policy worker-count
			# The eight scenarios of the proposal, beside the shipped policies
			kubectl sno topology decide --table`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	flags := command.Flags()
	flags.StringVar(&named, "platform", string(configv1.NonePlatformType), "The platform, as install-config names it.")
	flags.Int64Var(&controlPlane, "control-plane-replicas", 3, "How many control-plane nodes are installed.")
	flags.Int64Var(&arbiters, "arbiter-replicas", 0, "How many arbiters are installed.")
	flags.Int64Var(&workers, "workers", 3, "How many workers are installed, not those that are added later.")
	flags.StringVar(&policy, "policy", string(topology.PolicyEnhancement), "The rule: "+strings.Join(policies(), ", ")+".")
	flags.BoolVar(&all, "table", false, "Print the eight scenarios of the proposal under every policy.")
	for _, other := range []string{"platform", "control-plane-replicas", "arbiter-replicas", "workers", "policy"} {
		command.MarkFlagsMutuallyExclusive("table", other)
	}
	complete(command, "platform", platforms)
	complete(command, "policy", policies)
	command.RunE = func(*cobra.Command, []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if all {
			a, err := tableAnswer()
			if err != nil {
				return err
			}
			return out.print(p, a)
		}
		on, err := platform(named)
		if err != nil {
			return err
		}
		install := topology.Install{
			Platform: on, ControlPlane: &controlPlane, Arbiter: &arbiters, Compute: []topology.ComputePool{{Name: "worker", Replicas: &workers}},
		}
		if policy == formerPolicy {
			fmt.Fprintf(p.ErrOut, "warning: --policy=%s is called %s now; the old name ends with the next release\n", formerPolicy, topology.PolicyEnhancement)
			policy = string(topology.PolicyEnhancement)
		}
		decision, err := topology.Decide(install, topology.Policy(policy))
		if err != nil {
			return err
		}
		return out.print(p, decisionAnswer(policy, decision))
	}
	return command
}

func policies() []string {
	var names []string
	for _, policy := range topology.Policies() {
		names = append(names, string(policy))
	}
	return names
}

// decided is a decision as it is printed.
type decided struct {
	Policy                 string  `json:"policy"`
	ControlPlaneTopology   string  `json:"controlPlaneTopology"`
	InfrastructureTopology string  `json:"infrastructureTopology"`
	DefaultPlacement       string  `json:"defaultPlacement,omitempty"`
	Ingress                routers `json:"ingress"`
	MastersSchedulable     bool    `json:"mastersSchedulable"`
	LoadBalancer           balance `json:"loadBalancer"`
}

type routers struct {
	Pool     string `json:"pool"`
	Replicas int32  `json:"replicas"`
}

type balance struct {
	Needed            bool   `json:"needed"`
	NeededWithWorkers bool   `json:"neededWithWorkers"`
	Provided          bool   `json:"provided"`
	Reason            string `json:"reason"`
}

func decidedOf(policy string, d topology.Decision) decided {
	return decided{
		Policy: policy, ControlPlaneTopology: string(d.ControlPlaneTopology), InfrastructureTopology: string(d.InfrastructureTopology),
		DefaultPlacement: string(d.DefaultPlacement), Ingress: routers{string(d.IngressPool), d.IngressReplicas},
		MastersSchedulable: d.MastersSchedulable,
		LoadBalancer:       balance{d.LoadBalancer.Needed, d.LoadBalancer.NeededWithWorkers, d.LoadBalancer.Provided, d.LoadBalancer.Reason},
	}
}

func decisionAnswer(policy string, d topology.Decision) answer {
	t := table("WHAT", "IS")
	row(t, "Policy", policy)
	row(t, "Control-plane topology", string(d.ControlPlaneTopology))
	row(t, "Infrastructure topology", string(d.InfrastructureTopology))
	row(t, "Default placement of ingress", cmp.Or(string(d.DefaultPlacement), "not set by this policy"))
	row(t, "Ingress", pods(d.IngressReplicas, "router")+" "+on(d.IngressPool))
	row(t, "Control plane takes workloads", yes(d.MastersSchedulable))
	row(t, "Load balancer needed", needed(d.LoadBalancer.Needed, d.LoadBalancer.Provided))
	row(t, "Once workers are added", needed(d.LoadBalancer.NeededWithWorkers, d.LoadBalancer.Provided))
	row(t, "Why", d.LoadBalancer.Reason)
	return answer{kind: "InstallDecision", value: decidedOf(policy, d), names: []string{policy}, table: t}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func needed(is, provided bool) string {
	if is && provided {
		return "yes, the platform provides it"
	}
	return yes(is)
}
