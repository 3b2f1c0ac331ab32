// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"

	"github.com/solonode/sno/topology"
)

var errPlatform = errors.New("unknown platform")

var platforms = []string{
	string(configv1.NonePlatformType), string(configv1.BareMetalPlatformType), string(configv1.AWSPlatformType),
	string(configv1.AzurePlatformType), string(configv1.GCPPlatformType), string(configv1.IBMCloudPlatformType),
	string(configv1.PowerVSPlatformType), string(configv1.OpenStackPlatformType), string(configv1.VSpherePlatformType),
	string(configv1.NutanixPlatformType), string(configv1.KubevirtPlatformType), string(configv1.OvirtPlatformType),
	string(configv1.ExternalPlatformType), string(configv1.LibvirtPlatformType), string(configv1.AlibabaCloudPlatformType),
	string(configv1.EquinixMetalPlatformType),
}

func newDecide(p *program) *cobra.Command {
	var named, policy string
	var controlPlane, arbiters, workers int64
	var all bool
	command := newCommand("decide", "Print what an installer would decide", `
Print what an installer decides before the first node exists: the topologies, where ingress runs, and whether it needs a load balancer.

The policies are enhancement, the table of the proposal that sno implements (the default); worker-count, the rule of the first
releases; and default-placement, the rule of later releases. Workers that are added after the installation change nothing.`, `
		# One control-plane node and two workers on no platform
		kubectl sno topology decide --platform None --control-plane-replicas 1 --workers 2 --policy worker-count
		# The eight scenarios of the proposal, by every policy
		kubectl sno topology decide --table`, p.bindOutput)
	flags := command.Flags()
	flags.StringVar(&named, "platform", string(configv1.NonePlatformType), "The platform, as in install-config.")
	flags.Int64Var(&controlPlane, "control-plane-replicas", 3, "Number of control-plane nodes at installation.")
	flags.Int64Var(&arbiters, "arbiter-replicas", 0, "Number of arbiters at installation.")
	flags.Int64Var(&workers, "workers", 3, "Number of workers at installation, without those added later.")
	flags.StringVar(&policy, "policy", string(topology.PolicyEnhancement), "The policy: "+strings.Join(policies(), ", ")+".")
	flags.BoolVar(&all, "table", false, "Print the eight scenarios of the proposal by every policy.")
	for _, other := range []string{"platform", "control-plane-replicas", "arbiter-replicas", "workers", "policy"} {
		command.MarkFlagsMutuallyExclusive("table", other)
	}
	complete(command, "platform", platforms...)
	complete(command, "policy", policies()...)
	command.RunE = func(*cobra.Command, []string) error {
		if all {
			a, err := tableAnswer()
			if err != nil {
				return err
			}
			return p.print(a)
		}
		i := slices.IndexFunc(platforms, func(known string) bool { return strings.EqualFold(named, known) })
		if i < 0 {
			return fmt.Errorf("%w %q; use one of: %s", errPlatform, named, strings.Join(platforms, ", "))
		}
		d, err := topology.Decide(topology.Install{
			Platform: configv1.PlatformType(platforms[i]), ControlPlane: &controlPlane, Arbiter: &arbiters,
			Compute: []topology.ComputePool{{Name: "worker", Replicas: &workers}},
		}, topology.Policy(policy))
		if err != nil {
			return err
		}
		return p.print(decisionAnswer(policy, d))
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

func decision(policy string, d topology.Decision) map[string]any {
	fields := map[string]any{
		"policy": policy, "controlPlaneTopology": d.ControlPlaneTopology, "infrastructureTopology": d.InfrastructureTopology,
		"ingress":            map[string]any{"pool": d.IngressPool, "replicas": d.IngressReplicas},
		"mastersSchedulable": d.MastersSchedulable,
		"loadBalancer": map[string]any{
			"needed": d.LoadBalancer.Needed, "neededWithWorkers": d.LoadBalancer.NeededWithWorkers,
			"provided": d.LoadBalancer.Provided, "reason": d.LoadBalancer.Reason,
		},
	}
	if d.DefaultPlacement != "" {
		fields["defaultPlacement"] = d.DefaultPlacement
	}
	return fields
}

func decisionAnswer(policy string, d topology.Decision) answer {
	t := table("WHAT", "IS")
	row(t, "Policy", policy)
	row(t, "Control-plane topology", d.ControlPlaneTopology)
	row(t, "Infrastructure topology", d.InfrastructureTopology)
	row(t, "Default placement of ingress", cmp.Or(string(d.DefaultPlacement), "not set by this policy"))
	row(t, "Ingress", count(d.IngressReplicas, "router")+" "+on(d.IngressPool))
	row(t, "Control plane takes workloads", yes(d.MastersSchedulable, false))
	row(t, "Load balancer needed", yes(d.LoadBalancer.Needed, d.LoadBalancer.Provided))
	row(t, "Needed once workers are added", yes(d.LoadBalancer.NeededWithWorkers, d.LoadBalancer.Provided))
	row(t, "Reason", d.LoadBalancer.Reason)
	return answer{kind: "InstallDecision", value: decision(policy, d), names: []string{policy}, table: t}
}

func yes(is, provided bool) string {
	switch {
	case is && provided:
		return "yes, the platform provides it"
	case is:
		return "yes"
	}
	return "no"
}

// tableAnswer returns the eight scenarios of the proposal (R-TOP-5), with AWS for a cloud.
func tableAnswer() (answer, error) {
	columns := []string{"ROW", "SCENARIO", "PLATFORM"}
	for _, policy := range policies() {
		columns = append(columns, strings.ToUpper(policy), "LOAD BALANCER")
	}
	t := table(columns...)
	rows := []map[string]any{}
	for _, s := range []struct {
		name  string
		day1  int64
		later bool
	}{
		{"no workers", 0, false}, {"single day-1 worker", 1, true}, {"several day-1 workers", 2, true}, {"only day-2 workers", 0, true},
	} {
		for _, platform := range []struct {
			name string
			configv1.PlatformType
		}{{"None", configv1.NonePlatformType}, {"Cloud", configv1.AWSPlatformType}} {
			cells := []any{len(rows) + 1, s.name, platform.name}
			var decisions []any
			one := int64(1)
			for _, policy := range topology.Policies() {
				d, err := topology.Decide(topology.Install{
					Platform: platform.PlatformType, ControlPlane: &one, Compute: []topology.ComputePool{{Name: "worker", Replicas: &s.day1}},
				}, policy)
				if err != nil {
					return answer{}, err
				}
				isNeeded := d.LoadBalancer.Needed
				if s.later {
					isNeeded = d.LoadBalancer.NeededWithWorkers
				}
				cells = append(cells, fmt.Sprintf("%s, %s %s", d.InfrastructureTopology, count(d.IngressReplicas, "router"), on(d.IngressPool)),
					yes(isNeeded, d.LoadBalancer.Provided))
				decisions = append(decisions, decision(string(policy), d))
			}
			row(t, cells...)
			rows = append(rows, map[string]any{
				"scenario": s.name, "platform": platform.name, "day1Workers": s.day1, "workersLater": s.later, "decisions": decisions,
			})
		}
	}
	return answer{kind: "PolicyTable", value: map[string]any{"rows": rows}, names: policies(), table: t}, nil
}
