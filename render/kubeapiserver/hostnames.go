// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// ErrMissing is returned for a required value that is not set.
var ErrMissing = errors.New("missing")

// serviceNetwork returns the service ranges of the status, or of the spec if the status has none.
func serviceNetwork(network *configv1.Network) []string {
	if len(network.Status.ServiceNetwork) > 0 {
		return network.Status.ServiceNetwork
	}
	return network.Spec.ServiceNetwork
}

func clusterNetwork(network *configv1.Network) []string {
	entries := network.Status.ClusterNetwork
	if len(entries) == 0 {
		entries = network.Spec.ClusterNetwork
	}
	ranges := make([]string, 0, len(entries))
	for _, entry := range entries {
		ranges = append(ranges, entry.CIDR)
	}
	return ranges
}

// ServiceHostnames returns the sorted names and addresses of the Service kubernetes.
func ServiceHostnames(network *configv1.Network) ([]string, error) {
	ranges := serviceNetwork(network)
	if len(ranges) == 0 {
		return nil, fmt.Errorf("network.config.openshift.io %q: spec.serviceNetwork: %w: set the range of service addresses", network.Name, ErrMissing)
	}
	// OpenShift's cluster domain is fixed.
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, cidr := range ranges {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("network.config.openshift.io %q: spec.serviceNetwork %q is not a range of addresses: %w", network.Name, cidr, err)
		}
		names = append(names, prefix.Masked().Addr().Next().String())
	}
	slices.Sort(names)
	return names, nil
}

// LocalHostnames returns the names and addresses of the API server on the same node, with IPv6 if services use it.
func LocalHostnames(network *configv1.Network) []string {
	names := []string{"127.0.0.1", "localhost"}
	if slices.ContainsFunc(serviceNetwork(network), isIPv6) {
		names = append([]string{"::1"}, names...)
		slices.Sort(names)
	}
	return names
}

// ExternalHostnames returns the name or address of the load balancer for clients outside of the cluster.
func ExternalHostnames(infrastructure *configv1.Infrastructure) ([]string, error) {
	return hostnames(infrastructure, "apiServerURL", infrastructure.Status.APIServerURL)
}

// InternalHostnames returns the name or address of the load balancer for nodes.
func InternalHostnames(infrastructure *configv1.Infrastructure) ([]string, error) {
	return hostnames(infrastructure, "apiServerInternalURI", infrastructure.Status.APIServerInternalURL)
}

func hostnames(infrastructure *configv1.Infrastructure, field, value string) ([]string, error) {
	if value == "" {
		return nil, fmt.Errorf("infrastructure.config.openshift.io %q: status.%s: %w: set the URL of the API server", infrastructure.Name, field, ErrMissing)
	}
	u, err := url.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("infrastructure.config.openshift.io %q: status.%s: %w: %w", infrastructure.Name, field, ErrInvalid, err)
	}
	if u.Hostname() == "" || u.Scheme != "https" {
		return nil, fmt.Errorf("infrastructure.config.openshift.io %q: status.%s: %w: %q, want https://HOST:PORT", infrastructure.Name, field, ErrInvalid, value)
	}
	return []string{u.Hostname()}, nil
}

func isIPv6(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Addr().Is6()
}
