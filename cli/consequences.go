package cli

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/console"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

// consequence is what follows from a topology for one module.
type consequence struct {
	Module string `json:"module"`
	Text   string `json:"text"`
}

// consequences asks the modules' own functions, by which operators that vendor them shape their operands.
func consequences(cluster topology.Cluster, placement configv1.DefaultPlacement, nodes map[string]int) ([]consequence, error) {
	pool, disagree, err := ingress.RouterPool(cluster, placement, ingress.PlacementFromTopology)
	if err != nil {
		return nil, fmt.Errorf("placing the router: %w", err)
	}
	routers := pods(topology.Replicas(cluster.Governing(pool)), "router") + " " + on(pool)
	if disagree {
		// The operator writes Workers wherever nobody chose, so that is nobody's wish.
		routers += ", although defaultPlacement is " + string(placement)
		if placement == configv1.DefaultPlacementWorkers {
			routers += ", as wherever nobody chose"
		}
	}
	servers, err := oauthServers(cluster, nodes["master"])
	if err != nil {
		return nil, err
	}
	approved, err := approvals(cluster)
	if err != nil {
		return nil, err
	}
	guarded, err := guard(cluster)
	if err != nil {
		return nil, fmt.Errorf("counting the quorum guards: %w", err)
	}
	consoles, err := consolePods(cluster)
	if err != nil {
		return nil, err
	}
	masters, err := expected(cluster)
	if err != nil {
		return nil, fmt.Errorf("counting the control-plane nodes: %w", err)
	}
	return []consequence{
		{ingress.Name, routers},
		{etcdguard.Name, guarded},
		{machineconfig.Name, masters},
		{console.Name, consoles},
		{auth.Name, servers},
		{approver.Name, approved},
	}, nil
}

func oauthServers(cluster topology.Cluster, controlPlaneNodes int) (string, error) {
	each := " each of the OAuth server and the OAuth API server, " + on(cluster.PoolFor(topology.ControlPlanePool))
	host, err := auth.NewHost(cluster, int32(controlPlaneNodes)) //nolint:gosec // nodes are few
	if errors.Is(err, auth.ErrNoNodes) {
		return "one pod for each control-plane node" + each, nil
	}
	if err != nil {
		return "", fmt.Errorf("counting the OAuth servers: %w", err)
	}
	replicas, err := auth.Replicas(host)
	if err != nil {
		return "", fmt.Errorf("counting the OAuth servers: %w", err)
	}
	return pods(replicas, "pod") + each, nil
}

func pods(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func consolePods(cluster topology.Cluster) (string, error) {
	replicas, err := console.Replicas(cluster)
	if err != nil {
		return "", fmt.Errorf("counting the pods of the console: %w", err)
	}
	pool, err := console.Pool(cluster)
	if err != nil {
		return "", fmt.Errorf("placing the pods of the console: %w", err)
	}
	apart := "each on a node of its own"
	if replicas == 1 {
		apart = "without anti-affinity, so that a rollout can finish"
	}
	return pods(replicas, "pod") + " each of console and downloads, " + on(pool) + ", " + apart, nil
}

// guard is for as many members as the topology expects.
func guard(cluster topology.Cluster) (string, error) {
	host, err := etcdguard.NewHost(cluster, 1, "")
	if err != nil {
		return "", err
	}
	budget, err := etcdguard.DisruptionBudget(host)
	if err != nil {
		return "", err
	}
	if budget == nil {
		return "no quorum guard: there is no quorum to guard here", nil
	}
	size, err := etcdguard.Size(host)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("a quorum guard with %s, of which all but %s must stay", pods(int32(size), "pod"), budget.Spec.MaxUnavailable), nil //nolint:gosec // members are few
}

func expected(cluster topology.Cluster) (string, error) {
	masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(cluster)
	if err != nil {
		return "", err
	}
	text := pods(int32(masters), "control-plane node") + " expected" //nolint:gosec // a constant
	if arbiters > 0 {
		text = pods(int32(masters), "control-plane node") + " and " + pods(int32(arbiters), "arbiter") + " expected" //nolint:gosec // constants
	}
	if topology.SingleReplica(cluster.ControlPlane.Mode) {
		return text + "; it is not drained before it restarts: its pods have nowhere to go", nil
	}
	return text + "; nodes are drained before they restart", nil
}

func approvals(cluster topology.Cluster) (string, error) {
	enabled, err := approver.Enabled(approver.Host{Cluster: cluster, Machines: approver.Absent})
	if err != nil {
		return "", fmt.Errorf("asking who approves certificates: %w", err)
	}
	if enabled {
		return "the stock approver approves certificates of nodes", nil
	}
	return "without Machines nobody approves client certificates of nodes by himself: approver's approve does it", nil
}
