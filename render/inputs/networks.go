// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/netip"
	"slices"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	configv1 "github.com/openshift/api/config/v1"
)

// Kubernetes allows at most 2^16 node networks in one IPv6 pod network.
const maxNodeBits = 16

type network struct {
	source *source
	field  string
	what   string
	prefix netip.Prefix
}

// checkNetworks finds ranges that are invalid, overlap, or are too small.
func (r *reader) checkNetworks() {
	var found []network
	if r.cluster.Network != nil {
		found = r.clusterNetworks()
	}
	machines := r.machineNetworks()
	for i, a := range found {
		for _, b := range append(found[:i:i], machines...) {
			if a.prefix.Overlaps(b.prefix) {
				r.addFault(a.source, ErrOverlap, a.field, fmt.Sprintf("%s %s overlaps %s %s at %s:%d", a.what, a.prefix, b.what, b.prefix,
					b.source.file, b.source.line(b.field)), "choose ranges that do not overlap")
			}
		}
		for _, node := range r.cluster.Nodes {
			for _, address := range addressesOf(node) {
				if a.prefix.Contains(address.ip) {
					where := r.nodeSource(node)
					r.addFault(a.source, ErrOverlap, a.field, fmt.Sprintf("%s %s has the address %s of Node %s at %s:%d", a.what, a.prefix, address.ip,
						node.Name, where.file, where.line(address.field)), "choose a range without addresses of machines")
				}
			}
		}
	}
}

func (r *reader) parsePrefix(s *source, field, value string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		r.addFault(s, ErrInvalid, field, fmt.Sprintf("%q is not a range of addresses", value), "such as 10.128.0.0/14 or fd01::/48")
		return prefix, false
	}
	if prefix != prefix.Masked() {
		r.addFault(s, ErrInvalid, field, fmt.Sprintf("%s begins inside the range", prefix), fmt.Sprintf("write %s", prefix.Masked()))
	}
	return prefix.Masked(), true
}

func family(ip netip.Addr) int {
	if ip.Is4() {
		return 4
	}
	return 6
}

func (r *reader) clusterNetworks() []network {
	s, spec := r.configSource("Network"), r.cluster.Network.Spec
	var found []network
	nodes := map[int]int{} // number of nodes that fit, by family
	for i, entry := range spec.ClusterNetwork {
		field := fmt.Sprintf("spec.clusterNetwork[%d].cidr", i)
		prefix, ok := r.parsePrefix(s, field, entry.CIDR)
		if !ok {
			continue
		}
		found = append(found, network{s, field, "cluster network", prefix})
		r.checkHostPrefix(s, fmt.Sprintf("spec.clusterNetwork[%d].hostPrefix", i), prefix, entry.HostPrefix, nodes)
	}
	for ipFamily, room := range nodes {
		if room < len(r.cluster.Nodes) {
			r.addFault(s, ErrInvalid, "spec.clusterNetwork", fmt.Sprintf("room for %d nodes (IPv%d), but there are %d", room, ipFamily, len(r.cluster.Nodes)),
				"a larger network, or a longer hostPrefix")
		}
	}
	families := map[int]bool{}
	for i, value := range spec.ServiceNetwork {
		field := fmt.Sprintf("spec.serviceNetwork[%d]", i)
		prefix, ok := r.parsePrefix(s, field, value)
		if !ok {
			continue
		}
		found = append(found, network{s, field, "service network", prefix})
		ipFamily := family(prefix.Addr())
		if families[ipFamily] {
			r.addFault(s, ErrInvalid, field, fmt.Sprintf("a second service network of IPv%d", ipFamily), "there is one for each of IPv4 and IPv6")
		}
		families[ipFamily] = true
		if _, ok := nodes[ipFamily]; !ok {
			r.addFault(s, ErrInvalid, field, fmt.Sprintf("IPv%d without a cluster network of that family", ipFamily), "services and pods need the same families")
		}
		r.checkFamily(field, ipFamily)
	}
	if len(spec.ClusterNetwork) == 0 {
		r.addFault(s, ErrMissing, "spec.clusterNetwork", "empty", "set the range of pods")
	}
	if len(spec.ServiceNetwork) == 0 {
		r.addFault(s, ErrMissing, "spec.serviceNetwork", "empty", "set the range of services")
	}
	if spec.ServiceNodePortRange != "" {
		if _, err := utilnet.ParsePortRange(spec.ServiceNodePortRange); err != nil {
			r.addFault(s, ErrInvalid, "spec.serviceNodePortRange", err.Error(), "such as 30000-32767")
		}
	}
	if external := spec.ExternalIP; external != nil {
		r.checkRanges(s, "spec.externalIP.autoAssignCIDRs", external.AutoAssignCIDRs)
		if policy := external.Policy; policy != nil {
			r.checkRanges(s, "spec.externalIP.policy.allowedCIDRs", policy.AllowedCIDRs)
			r.checkRanges(s, "spec.externalIP.policy.rejectedCIDRs", policy.RejectedCIDRs)
		}
	}
	r.checkNetworkStatus(s)
	return found
}

func (r *reader) checkRanges(s *source, field string, values []string) {
	for i, value := range values {
		r.parsePrefix(s, fmt.Sprintf("%s[%d]", field, i), value)
	}
}

// checkNetworkStatus finds a status that differs from the spec: loops read the status.
func (r *reader) checkNetworkStatus(s *source) {
	spec, status := r.cluster.Network.Spec, r.cluster.Network.Status
	if len(status.ClusterNetwork) > 0 && !slices.Equal(status.ClusterNetwork, spec.ClusterNetwork) {
		r.addFault(s, ErrConflict, "status.clusterNetwork", "differs from the spec", "remove it, or make both the same")
	}
	if len(status.ServiceNetwork) > 0 && !slices.Equal(status.ServiceNetwork, spec.ServiceNetwork) {
		r.addFault(s, ErrConflict, "status.serviceNetwork", "differs from the spec", "remove it, or make both the same")
	}
}

// checkFamily finds control-plane nodes without an address of a family that kube-apiserver needs.
func (r *reader) checkFamily(field string, wanted int) {
	for _, node := range r.cluster.controlPlane() {
		internal := slices.DeleteFunc(addressesOf(node), func(a address) bool { return !a.internal })
		if len(internal) > 0 && !slices.ContainsFunc(internal, func(a address) bool { return family(a.ip) == wanted }) {
			r.addFault(r.configSource("Network"), ErrInvalid, field, fmt.Sprintf("IPv%d, but Node %s has no internal address of that family", wanted, node.Name),
				"add one, or remove the network")
		}
	}
}

// checkHostPrefix checks the size of a node's network and adds the number of nodes that fit.
func (r *reader) checkHostPrefix(s *source, field string, prefix netip.Prefix, hostPrefix uint32, nodes map[int]int) {
	ipFamily, most := family(prefix.Addr()), prefix.Addr().BitLen()-2
	if hostPrefix == 0 { // defaults of the network operator and kube-controller-manager
		if hostPrefix = 23; ipFamily == 6 {
			hostPrefix = 64
		}
	}
	bits := int(hostPrefix) - prefix.Bits()
	switch {
	case bits < 0:
		r.addFault(s, ErrInvalid, field, fmt.Sprintf("/%d is larger than the whole network %s", hostPrefix, prefix),
			fmt.Sprintf("it is between %d and %d", prefix.Bits(), most))
		bits = 0
	case int(hostPrefix) > most:
		r.addFault(s, ErrInvalid, field, fmt.Sprintf("/%d has no room for pods", hostPrefix), fmt.Sprintf("it is between %d and %d", prefix.Bits(), most))
	case ipFamily == 6 && bits > maxNodeBits:
		r.addFault(s, ErrInvalid, field, fmt.Sprintf("/%d is too small in %s", hostPrefix, prefix),
			fmt.Sprintf("at most %d bits longer than the network", maxNodeBits))
	}
	nodes[ipFamily] += 1 << min(bits, 2*maxNodeBits)
}

func (r *reader) machineNetworks() []network {
	infrastructure := r.cluster.Infrastructure
	if infrastructure == nil {
		return nil
	}
	var found []network
	s, platform := r.configSource("Infrastructure"), infrastructure.Spec.PlatformSpec
	for name, ranges := range map[string][]configv1.CIDR{
		"baremetal": deref(platform.BareMetal).MachineNetworks,
		"openstack": deref(platform.OpenStack).MachineNetworks,
		"vsphere":   deref(platform.VSphere).MachineNetworks,
	} {
		for i, value := range ranges {
			field := fmt.Sprintf("spec.platformSpec.%s.machineNetworks[%d]", name, i)
			if prefix, ok := r.parsePrefix(s, field, string(value)); ok {
				found = append(found, network{s, field, "machine network", prefix})
			}
		}
	}
	return found
}

func deref[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
