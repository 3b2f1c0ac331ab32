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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/topology"
)

// errNoInfrastructure is returned for a cluster that does not say what it is.
var errNoInfrastructure = errors.New("there is no infrastructures.config.openshift.io/cluster, so nothing says what kind of cluster this is")

// facts are what a cluster is.
type facts struct {
	ControlPlaneTopology   string         `json:"controlPlaneTopology"`
	InfrastructureTopology string         `json:"infrastructureTopology"`
	HighAvailabilityMode   string         `json:"highAvailabilityMode"`
	Platform               string         `json:"platform"`
	DefaultPlacement       string         `json:"defaultPlacement"`
	Nodes                  map[string]int `json:"nodes"`
	Findings               []string       `json:"findings"`
	Consequences           []consequence  `json:"consequences"`
}

func newTopology(p *program) *cobra.Command {
	var mustGather string
	command := &cobra.Command{
		Use:   "topology",
		Short: "Say what kind of cluster this is, and what follows from it",
		Long: `Say what kind of cluster this is: both topologies, the high-availability mode, the platform, the nodes by role, and where
ingress belongs; and in words what follows from it for each module.`,
		Example: examples(`
			# This cluster
			kubectl sno topology
			# The one that a must-gather is about
			kubectl sno topology --must-gather must-gather.tar.gz
			# One fact, for a script
			kubectl sno topology -o jsonpath='{.highAvailabilityMode}'`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	bindMustGather(command, &mustGather)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		from, err := p.open(command, mustGather)
		if err != nil {
			return err
		}
		found, err := readFacts(command.Context(), from.client)
		if err == nil {
			err = out.print(p, factsAnswer(found))
		}
		return from.finish(p, err)
	}
	command.AddCommand(newDecide(p))
	return command
}

func readFacts(ctx context.Context, from client.Reader) (facts, error) {
	var last manager.LastTopology
	cluster, err := last.Read(ctx, from)
	if err != nil {
		return facts{}, err
	}
	if cluster == nil {
		return facts{}, errNoInfrastructure
	}
	_, ingress, err := manager.Read[configv1.Ingress](ctx, from, manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("Ingress"), Name: "cluster"})
	if err != nil {
		return facts{}, err
	}
	var placement configv1.DefaultPlacement
	if ingress != nil {
		placement = ingress.Status.DefaultPlacement
	}
	nodes, err := countNodes(ctx, from)
	if err != nil {
		return facts{}, err
	}
	follows, err := consequences(*cluster, placement, nodes)
	if err != nil {
		return facts{}, err
	}
	found := facts{
		ControlPlaneTopology: string(cluster.ControlPlane.Mode), InfrastructureTopology: string(cluster.Infrastructure.Mode),
		HighAvailabilityMode: string(cluster.HighAvailability()), Platform: cmp.Or(string(cluster.Platform), string(configv1.NonePlatformType)),
		DefaultPlacement: string(placement), Nodes: nodes, Findings: []string{}, Consequences: follows,
	}
	for _, finding := range cluster.Findings() {
		found.Findings = append(found.Findings, finding.String())
	}
	return found, nil
}

const rolePrefix = "node-role.kubernetes.io/"

// countNodes counts nodes by role. A node may have several roles; control-plane is another name of master.
func countNodes(ctx context.Context, from client.Reader) (map[string]int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("NodeList"))
	list.APIVersion = "v1"
	if err := from.List(ctx, list); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the nodes: %w", err)
	}
	counts := map[string]int{}
	for _, node := range list.Items {
		roles := map[string]bool{}
		for label := range node.Labels {
			if role, is := strings.CutPrefix(label, rolePrefix); is {
				if role == "control-plane" {
					role = "master"
				}
				roles[role] = true
			}
		}
		if len(roles) == 0 {
			roles["none"] = true
		}
		for role := range roles {
			counts[role]++
		}
	}
	return counts, nil
}

func factsAnswer(found facts) answer {
	t := table("WHAT", "IS")
	row(t, "Control-plane topology", found.ControlPlaneTopology)
	row(t, "Infrastructure topology", found.InfrastructureTopology)
	row(t, "High-availability mode", found.HighAvailabilityMode)
	row(t, "Platform", found.Platform)
	row(t, "Default placement of ingress", cmp.Or(found.DefaultPlacement, "not set"))
	var nodes []string
	for _, role := range slices.Sorted(maps.Keys(found.Nodes)) {
		nodes = append(nodes, fmt.Sprintf("%d %s", found.Nodes[role], role))
	}
	row(t, "Nodes by role", cmp.Or(strings.Join(nodes, ", "), "none"))
	for _, finding := range found.Findings {
		row(t, "Beware", finding)
	}
	for _, c := range found.Consequences {
		row(t, c.Module, c.Text)
	}
	return answer{kind: "Topology", value: found, names: []string{"infrastructure.config.openshift.io/cluster"}, table: t}
}

// on names a pool in a sentence.
func on(pool topology.Pool) string {
	if pool == topology.ControlPlanePool {
		return "on the control plane"
	}
	return "on workers"
}
