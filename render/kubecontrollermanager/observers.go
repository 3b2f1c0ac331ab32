// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

// Errors of the observers.
var (
	ErrNoClusterName  = errors.New("the cluster has no infrastructure name")
	ErrClusterNetwork = errors.New("kube-controller-manager cannot allocate from the network")
	ErrLatencyProfile = errors.New("unknown latency profile")
)

// observers returns the operator's observers. None is for a cloud provider, as in the stock operator (U-REN-16).
func observers(s *inputs.Settings) []librarygo.Observer {
	gates := [][]string{{"extendedArguments", "feature-gates"}}
	if s.Profile == inputs.OpenShift {
		gates = append(gates, []string{"featureGates"})
	}
	return []librarygo.Observer{
		observe.FeatureGatesAt(s.Profile, gates...),
		observe.From(configv1client.ConfigV1Interface.Networks, func(network *configv1.Network) (map[string]any, error) {
			return networkArguments(network, s.Profile)
		}),
		observe.From(configv1client.ConfigV1Interface.Infrastructures, nameArguments),
		observe.From(configv1client.ConfigV1Interface.Nodes, latencyArguments),
		observe.Proxy,
		observeServiceCA,
		observe.TLSProfile,
	}
}

// networkArguments returns pod and service ranges, and in profile kubernetes the size of a node's range.
func networkArguments(network *configv1.Network, profile inputs.Profile) (map[string]any, error) {
	clusterNetwork, serviceNetwork := network.Status.ClusterNetwork, network.Status.ServiceNetwork
	if len(clusterNetwork) == 0 {
		clusterNetwork = network.Spec.ClusterNetwork
	}
	if len(serviceNetwork) == 0 {
		serviceNetwork = network.Spec.ServiceNetwork
	}
	var ranges []string
	for _, n := range clusterNetwork {
		ranges = append(ranges, n.CIDR)
	}
	config := observe.Merge(
		observe.Argument("cluster-cidr", strings.Join(ranges, ",")),
		observe.Argument("service-cluster-ip-range", strings.Join(serviceNetwork, ",")),
	)
	if profile != inputs.Kubernetes {
		return config, nil
	}
	sizes := map[bool]uint32{}
	for _, n := range clusterNetwork {
		prefix, err := netip.ParsePrefix(n.CIDR)
		if err != nil {
			return nil, fmt.Errorf("network cluster: clusterNetwork: %w", err)
		}
		if _, again := sizes[prefix.Addr().Is6()]; again {
			return nil, fmt.Errorf("network cluster: clusterNetwork: %s: %w: use one range of each family",
				n.CIDR, ErrClusterNetwork)
		}
		sizes[prefix.Addr().Is6()] = n.HostPrefix
	}
	for is6, size := range sizes {
		flag := "node-cidr-mask-size"
		if len(sizes) == 2 {
			flag += map[bool]string{false: "-ipv4", true: "-ipv6"}[is6]
		}
		if size > 0 {
			config = observe.Merge(config, observe.Argument(flag, fmt.Sprint(size)))
		}
	}
	return config, nil
}

func nameArguments(infrastructure *configv1.Infrastructure) (map[string]any, error) {
	if infrastructure.Status.InfrastructureName == "" {
		return nil, fmt.Errorf("infrastructure cluster: status.infrastructureName is empty: %w; set it", ErrNoClusterName)
	}
	return observe.Argument("cluster-name", infrastructure.Status.InfrastructureName), nil
}

// latencyArguments returns the grace period of nodes in the latency profile (U-REN-17).
func latencyArguments(node *configv1.Node) (map[string]any, error) {
	grace := configv1.DefaultNodeMonitorGracePeriod
	switch profile := node.Spec.WorkerLatencyProfile; profile {
	case "", configv1.DefaultUpdateDefaultReaction:
	case configv1.MediumUpdateAverageReaction:
		grace = configv1.MediumNodeMonitorGracePeriod
	case configv1.LowUpdateSlowReaction:
		grace = configv1.LowNodeMonitorGracePeriod
	default:
		return nil, fmt.Errorf("node.config.openshift.io cluster: spec.workerLatencyProfile: %w %s", ErrLatencyProfile, profile)
	}
	return observe.Argument("node-monitor-grace-period", grace.String()), nil
}

// observeServiceCA observes the service CA bundle after resource sync has copied it, which makes these loops a cycle.
func observeServiceCA(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
	ca, err := s.Kube().CoreV1().ConfigMaps(namespace).Get(ctx, "service-ca", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && ca.Data["ca-bundle.crt"] == "") {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	return observe.Nested(podtemplate.ResourceDir+"/configmaps/service-ca/ca-bundle.crt", "serviceServingCert", "certFile"), nil
}
