package existing

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/checks"
)

// ProviderName is what reports call clusters that were there already.
const ProviderName = "existing"

// Options say which cluster, and what for.
type Options struct {
	// Kubeconfig is a file; empty for $KUBECONFIG, ~/.kube/config, and then the pod's own account.
	Kubeconfig string
	// Scenario names the cluster in reports; empty for the name that the cluster has given itself.
	Scenario string
	// Image is what copies of Deployments run; empty for one that the cluster has already, see checks.Target.
	Image string
	// PayloadNamespaces are those of OpenShift's own objects; none means checks.PayloadNamespaces.
	PayloadNamespaces []string
	// Tiers that will be run; the account must have the permissions for them.
	Tiers []checks.Tier
	// Progress is told what a person should know about the cluster beforehand.
	Progress io.Writer
}

// Target connects to a cluster. It returns ErrKubeconfig, ErrUnreachable, or checks.ErrForbidden with every permission that is missing. Nodes are not
// restarted and topologies not changed through it: nothing here could bring a node back, or make those that another topology needs.
func Target(ctx context.Context, options Options) (checks.Target, error) {
	c, err := connect(ctx, options.Kubeconfig)
	if err != nil {
		return checks.Target{}, err
	}
	served, err := c.served()
	if err != nil {
		return checks.Target{}, err
	}
	missing, err := lacking(ctx, c.kube, requiredBy(options.Tiers), served)
	if err != nil {
		return checks.Target{}, fmt.Errorf("%w: %s: %w", ErrUnreachable, c.source, err)
	}
	if len(missing) > 0 {
		return checks.Target{}, forbidden(c.source, missing, options.Tiers)
	}
	infrastructure, err := c.infrastructure(ctx, served)
	if err != nil {
		return checks.Target{}, err
	}
	for _, note := range append(unservedNotes(served), unknownTopologyNotes(infrastructure)...) {
		fmt.Fprintln(options.Progress, note)
	}
	return checks.Target{
		Config: c.config, Scenario: scenario(options, infrastructure), Description: "a cluster that was there already, at " + c.config.Host,
		Provider: ProviderName, Times: checks.RealTimes(), Image: options.Image, Progress: options.Progress,
		PayloadNamespaces: options.PayloadNamespaces,
	}, nil
}

// scenario is never empty: reports are told apart by it.
func scenario(options Options, infrastructure *configv1.Infrastructure) string {
	switch {
	case options.Scenario != "":
		return options.Scenario
	case infrastructure != nil && infrastructure.Status.InfrastructureName != "":
		return infrastructure.Status.InfrastructureName
	default:
		return ProviderName
	}
}

// served are the resources of the server, as "resource.group". A group whose own server is away does not count against the others.
func (c *connection) served() (map[string]bool, error) {
	_, lists, err := c.kube.Discovery().ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("%w: %s: ask what it serves: %w", ErrUnreachable, c.source, err)
	}
	served := map[string]bool{}
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, resource := range list.APIResources {
			served[resource.Name+"."+group] = true
		}
	}
	return served, nil
}

// infrastructure returns nil where there is none.
func (c *connection) infrastructure(ctx context.Context, served map[string]bool) (*configv1.Infrastructure, error) {
	if !served["infrastructures.config.openshift.io"] {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	if err := configv1.Install(scheme); err != nil {
		return nil, err
	}
	kube, err := client.New(c.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, c.source, err)
	}
	infrastructure := &configv1.Infrastructure{}
	switch err := kube.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); {
	case err == nil:
		return infrastructure, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: read Infrastructure cluster: %w", ErrUnreachable, err)
	}
}

// unservedNotes say what cannot be checked because the cluster does not serve it.
func unservedNotes(served map[string]bool) []string {
	var missing []string
	for _, p := range required[checks.Static] {
		// No Machines is an answer, and on a single node the usual one.
		if strings.HasSuffix(p.group, ".openshift.io") && p.resource != "machines" && !served[p.kind()] {
			missing = append(missing, p.kind())
		}
	}
	if len(missing) == 0 || !served["infrastructures.config.openshift.io"] { // the runner refuses a cluster that is no OpenShift
		return nil
	}
	return []string{"This cluster does not serve " + strings.Join(missing, ", ") + ": checks that need them do not apply."}
}

// unknownTopologyNotes are values that nothing here knows. The checks go on: what they make of them is their business.
func unknownTopologyNotes(infrastructure *configv1.Infrastructure) []string {
	if infrastructure == nil {
		return nil
	}
	known := []configv1.TopologyMode{
		configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode,
		configv1.SingleReplicaTopologyMode, configv1.ExternalTopologyMode,
	}
	var notes []string
	for _, f := range []struct {
		field string
		value configv1.TopologyMode
	}{
		{"controlPlaneTopology", infrastructure.Status.ControlPlaneTopology}, {"infrastructureTopology", infrastructure.Status.InfrastructureTopology},
	} {
		if !slices.Contains(known, f.value) {
			notes = append(notes, fmt.Sprintf("Infrastructure cluster: status.%s is %q, which is none of %v. The checks go on with it.", f.field, f.value, known))
		}
	}
	return notes
}
