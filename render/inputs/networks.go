// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/netip"
	"slices"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/document"
)

// ParseNetwork reads a network, such as 192.0.2.0/24. A network with bits set in the part of the hosts is an error, and
// returned without them; after another error the network is not valid.
func ParseNetwork(at *field.Path, text string) (netip.Prefix, *field.Error) {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, field.Invalid(at, text, "write a network, such as 192.0.2.0/24 or fd01::/48")
	case prefix != prefix.Masked():
		return prefix.Masked(), field.Invalid(at, text, "bits are set in the part of the hosts; write "+prefix.Masked().String())
	}
	return prefix, nil
}

// Default prefix lengths of a node's network, as those of the network operator. Kubernetes allows at most 2^16 of them
// in one IPv6 network.
const (
	defaultHostPrefix4 = 23
	hostPrefix6        = 64
	maxNodeBits        = 16
)

// HostPrefix returns the prefix length of a node's network in a cluster network; 0 means the default.
func HostPrefix(at *field.Path, network netip.Prefix, length int) (int, *field.Error) {
	least, most := network.Bits(), network.Addr().BitLen()-2
	if network.Addr().Is6() {
		switch {
		case length != 0 && length != hostPrefix6:
			return hostPrefix6, field.Invalid(at, int64(length), "write 64, the prefix length of a node's range in an IPv6 network")
		case least > hostPrefix6 || least < hostPrefix6-maxNodeBits:
			return hostPrefix6, field.Invalid(at, int64(hostPrefix6), fmt.Sprintf("it does not fit %s, which has to be between /48 and /64", network))
		}
		return hostPrefix6, nil
	}
	if length == 0 {
		length = defaultHostPrefix4
	}
	if length < least || length > most {
		return least, field.Invalid(at, int64(length), fmt.Sprintf("it does not fit into %s, or has no address for pods; write a number from %d to %d",
			network, least, most))
	}
	return length, nil
}

type network struct {
	source *document.Document
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
				r.report(a.source, field.Invalid(document.Path("%s", a.field), a.prefix.String(),
					fmt.Sprintf("%s overlaps %s %s at %s; choose ranges that do not overlap", a.what, b.what, b.prefix, b.source.Place(b.field))))
			}
		}
		for _, node := range r.cluster.Nodes {
			for _, address := range addressesOf(node) {
				if a.prefix.Contains(address.ip) {
					r.report(a.source, field.Invalid(document.Path("%s", a.field), a.prefix.String(), fmt.Sprintf(
						"%s has the address %s of Node %s at %s; choose a range without addresses of machines", a.what, address.ip, node.Name, r.nodeSource(node).Place(address.field))))
				}
			}
		}
	}
}

func (r *reader) parseNetwork(s *document.Document, at, value string) (netip.Prefix, bool) {
	prefix, err := ParseNetwork(document.Path("%s", at), value)
	if err != nil {
		r.report(s, err)
	}
	return prefix, prefix.IsValid()
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
		at := fmt.Sprintf("spec.clusterNetwork[%d]", i)
		prefix, ok := r.parseNetwork(s, at+".cidr", entry.CIDR)
		if !ok {
			continue
		}
		found = append(found, network{s, at + ".cidr", "cluster network", prefix})
		length, err := HostPrefix(document.Path("%s.hostPrefix", at), prefix, int(entry.HostPrefix))
		if err != nil {
			r.report(s, err)
		}
		nodes[family(prefix.Addr())] += 1 << min(max(length-prefix.Bits(), 0), 2*maxNodeBits)
	}
	for ipFamily, room := range nodes {
		if room < len(r.cluster.Nodes) {
			r.report(s, field.Invalid(field.NewPath("spec", "clusterNetwork"), document.Omitted,
				fmt.Sprintf("there is room for %d nodes (IPv%d), and there are %d; give a larger network, or a longer hostPrefix", room, ipFamily, len(r.cluster.Nodes))))
		}
	}
	families := map[int]bool{}
	for i, value := range spec.ServiceNetwork {
		at := fmt.Sprintf("spec.serviceNetwork[%d]", i)
		prefix, ok := r.parseNetwork(s, at, value)
		if !ok {
			continue
		}
		found = append(found, network{s, at, "service network", prefix})
		ipFamily := family(prefix.Addr())
		if families[ipFamily] {
			r.report(s, field.Invalid(document.Path("%s", at), value, fmt.Sprintf("there is another service network of IPv%d; keep one for each of IPv4 and IPv6", ipFamily)))
		}
		families[ipFamily] = true
		if _, ok := nodes[ipFamily]; !ok {
			r.report(s, field.Invalid(document.Path("%s", at), value, fmt.Sprintf("there is no cluster network of IPv%d; services and pods need the same families", ipFamily)))
		}
		r.checkFamily(at, value, ipFamily)
	}
	if len(spec.ClusterNetwork) == 0 {
		r.report(s, field.Required(field.NewPath("spec", "clusterNetwork"), "set the range of pods"))
	}
	if len(spec.ServiceNetwork) == 0 {
		r.report(s, field.Required(field.NewPath("spec", "serviceNetwork"), "set the range of services"))
	}
	if spec.ServiceNodePortRange != "" {
		if _, err := utilnet.ParsePortRange(spec.ServiceNodePortRange); err != nil {
			r.report(s, field.Invalid(field.NewPath("spec", "serviceNodePortRange"), spec.ServiceNodePortRange, err.Error()+"; write a range, such as 30000-32767"))
		}
	}
	if external := spec.ExternalIP; external != nil {
		ranges := map[string][]string{"autoAssignCIDRs": external.AutoAssignCIDRs}
		if policy := external.Policy; policy != nil {
			ranges["policy.allowedCIDRs"], ranges["policy.rejectedCIDRs"] = policy.AllowedCIDRs, policy.RejectedCIDRs
		}
		for at, values := range ranges {
			for i, value := range values {
				r.parseNetwork(s, fmt.Sprintf("spec.externalIP.%s[%d]", at, i), value)
			}
		}
	}
	r.checkNetworkStatus(s)
	return found
}

// checkNetworkStatus finds a status that differs from the spec: loops read the status.
func (r *reader) checkNetworkStatus(s *document.Document) {
	spec, status := r.cluster.Network.Spec, r.cluster.Network.Status
	const advice = "it differs from the spec; remove it, or make both the same"
	if len(status.ClusterNetwork) > 0 && !slices.Equal(status.ClusterNetwork, spec.ClusterNetwork) {
		r.report(s, field.Invalid(field.NewPath("status", "clusterNetwork"), document.Omitted, advice))
	}
	if len(status.ServiceNetwork) > 0 && !slices.Equal(status.ServiceNetwork, spec.ServiceNetwork) {
		r.report(s, field.Invalid(field.NewPath("status", "serviceNetwork"), document.Omitted, advice))
	}
}

// checkFamily finds control-plane nodes without an address of a family that kube-apiserver needs.
func (r *reader) checkFamily(at, value string, wanted int) {
	for _, node := range r.cluster.controlPlane() {
		internal := slices.DeleteFunc(addressesOf(node), func(a address) bool { return !a.internal })
		if len(internal) > 0 && !slices.ContainsFunc(internal, func(a address) bool { return family(a.ip) == wanted }) {
			r.report(r.configSource("Network"), field.Invalid(document.Path("%s", at), value,
				fmt.Sprintf("Node %s has no internal address of IPv%d; add one, or remove the network", node.Name, wanted)))
		}
	}
}

func (r *reader) machineNetworks() []network {
	infrastructure := r.cluster.Infrastructure
	if infrastructure == nil {
		return nil
	}
	var found []network
	s, platform := r.configSource("Infrastructure"), infrastructure.Spec.PlatformSpec
	for name, ranges := range map[string][]configv1.CIDR{
		"baremetal": ptr.Deref(platform.BareMetal, configv1.BareMetalPlatformSpec{}).MachineNetworks,
		"openstack": ptr.Deref(platform.OpenStack, configv1.OpenStackPlatformSpec{}).MachineNetworks,
		"vsphere":   ptr.Deref(platform.VSphere, configv1.VSpherePlatformSpec{}).MachineNetworks,
	} {
		for i, value := range ranges {
			at := fmt.Sprintf("spec.platformSpec.%s.machineNetworks[%d]", name, i)
			if prefix, ok := r.parseNetwork(s, at, string(value)); ok {
				found = append(found, network{s, at, "machine network", prefix})
			}
		}
	}
	return found
}
