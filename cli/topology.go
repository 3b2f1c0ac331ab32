// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/console"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

var errNoInfrastructure = errors.New("infrastructures.config.openshift.io/cluster does not exist or has no readable topology")

func newTopology(p *program) *cobra.Command {
	command := newCommand("topology", "Print the topology of the cluster and its effects", `
Print both topologies, the high-availability mode, the platform, the nodes by role and the default placement of ingress; and in words
what follows for the operand of each module.`, `
		# The cluster of a must-gather
		kubectl sno topology --must-gather must-gather.tar.gz
		# One fact, for a script
		kubectl sno topology -o jsonpath='{.highAvailabilityMode}'`, p.bindOutput, p.bindMustGather)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return p.read(command, func(from rehearsal.Base, _ client.Client) error {
			a, err := topologyAnswer(command.Context(), from)
			if err != nil {
				return err
			}
			return p.print(a)
		})
	}
	command.AddCommand(newDecide(p))
	return command
}

func topologyAnswer(ctx context.Context, from client.Reader) (answer, error) {
	cluster, err := (&controller.Topology{}).Read(ctx, from)
	if err != nil {
		return answer{}, err
	}
	if cluster == nil {
		return answer{}, errNoInfrastructure
	}
	object := controller.Object{GroupVersionKind: configv1.GroupVersion.WithKind("Ingress"), Name: "cluster"}
	_, ingress, err := controller.Read[configv1.Ingress](ctx, from, object)
	if err != nil {
		return answer{}, err
	}
	if ingress == nil {
		ingress = &configv1.Ingress{}
	}
	nodes, err := countNodes(ctx, from)
	if err != nil {
		return answer{}, err
	}
	follows, err := consequences(*cluster, ingress.Status.DefaultPlacement, nodes)
	if err != nil {
		return answer{}, err
	}
	var roles []string
	for _, role := range slices.Sorted(maps.Keys(nodes)) {
		roles = append(roles, fmt.Sprintf("%d %s", nodes[role], role))
	}
	platform := cmp.Or(cluster.Platform, configv1.NonePlatformType)
	t, findings := table("WHAT", "IS"), []string{}
	row(t, "Control-plane topology", cluster.ControlPlane.Mode)
	row(t, "Infrastructure topology", cluster.Infrastructure.Mode)
	row(t, "High-availability mode", cluster.HighAvailability())
	row(t, "Platform", platform)
	row(t, "Default placement of ingress", cmp.Or(ingress.Status.DefaultPlacement, "not set"))
	row(t, "Nodes by role", cmp.Or(strings.Join(roles, ", "), "none"))
	for _, finding := range cluster.Findings() {
		findings = append(findings, finding.String())
		row(t, "Warning", finding.String())
	}
	for _, c := range follows {
		row(t, c.Module, c.Text)
	}
	return answer{kind: "Topology", value: map[string]any{
		"controlPlaneTopology": cluster.ControlPlane.Mode, "infrastructureTopology": cluster.Infrastructure.Mode,
		"highAvailabilityMode": cluster.HighAvailability(), "platform": platform, "defaultPlacement": ingress.Status.DefaultPlacement,
		"nodes": nodes, "findings": findings, "consequences": follows,
	}, names: []string{"infrastructure.config.openshift.io/cluster"}, table: t}, nil
}

// countNodes counts nodes by role; control-plane counts as master. A node may have several roles.
func countNodes(ctx context.Context, from client.Reader) (map[string]int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := from.List(ctx, list); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the nodes: %w", err)
	}
	counts := map[string]int{}
	for _, node := range list.Items {
		roles := sets.New[string]()
		for label := range node.Labels {
			if role, is := strings.CutPrefix(label, "node-role.kubernetes.io/"); is {
				roles.Insert(strings.Replace(role, "control-plane", "master", 1))
			}
		}
		if len(roles) == 0 {
			roles.Insert("none")
		}
		for role := range roles {
			counts[role]++
		}
	}
	return counts, nil
}

type consequence struct {
	Module string `json:"module"`
	Text   string `json:"text"`
}

// consequences uses the functions by which operators that vendor the modules shape their operands.
func consequences(cluster topology.Cluster, placement configv1.DefaultPlacement, nodes map[string]int) ([]consequence, error) {
	var all []consequence
	var failures []error
	add := func(module, text string, errs ...error) {
		all = append(all, consequence{module, text})
		if err := errors.Join(errs...); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", module, err))
		}
	}

	pool, disagree, err := ingress.RouterPool(cluster, placement, ingress.PlacementFromTopology)
	text := count(topology.Replicas(cluster.Governing(pool)), "router") + " " + on(pool)
	if disagree {
		text += ", although defaultPlacement is " + string(placement)
		if placement == configv1.DefaultPlacementWorkers {
			text += " (also its default)"
		}
	}
	add(ingress.Name, text, err)

	guard, err := etcdguard.NewHost(cluster, 1, "")
	budget, budgetErr := etcdguard.DisruptionBudget(guard)
	size, sizeErr := etcdguard.Size(guard)
	text = "no quorum guard: a single member has no quorum to protect"
	if budget != nil {
		text = fmt.Sprintf("a quorum guard with %s, of which %s may be unavailable", count(size, "pod"), budget.Spec.MaxUnavailable)
	}
	add(etcdguard.Name, text, err, budgetErr, sizeErr)

	masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(cluster)
	text = count(masters, "control-plane node")
	if arbiters > 0 {
		text += " and " + count(arbiters, "arbiter")
	}
	if topology.SingleReplica(cluster.ControlPlane.Mode) {
		text += " expected; it restarts without a drain, because its pods cannot move"
	} else {
		text += " expected; nodes are drained before they restart"
	}
	add(machineconfig.Name, text, err)

	pool, err = console.Pool(cluster)
	replicas := topology.Replicas(cluster.Governing(pool))
	text = count(replicas, "pod") + " each of console and downloads " + on(pool) + ", each on another node"
	if replicas == 1 {
		text = "1 pod each of console and downloads " + on(pool) + ", without anti-affinity, so that a rollout can finish"
	}
	add(console.Name, text, err)

	replicas, err = auth.Replicas(cluster, int32(nodes["master"])) //nolint:gosec // nodes are few
	text = count(replicas, "pod")
	if errors.Is(err, auth.ErrNoNodes) {
		text, err = "one pod for each control-plane node", nil
	}
	add(auth.Name, text+" each of the OAuth server and the OAuth API server "+on(cluster.PoolFor(topology.ControlPlanePool)), err)

	enabled, err := approver.Enabled(approver.Host{Cluster: cluster, Machines: approver.MachinesAbsent})
	text = "without Machines nothing in the cluster approves client certificates of nodes; use the approve tool"
	if enabled {
		text = "the stock approver approves the certificates of nodes"
	}
	add(approver.Name, text, err)
	return all, errors.Join(failures...)
}

func count[N int | int32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func on(pool topology.Pool) string {
	if pool == topology.ControlPlanePool {
		return "on the control plane"
	}
	return "on workers"
}
