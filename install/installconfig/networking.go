// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"cmp"
	"fmt"
	"net/netip"

	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/render/inputs"
)

// Default networks, as in openshift-install.
var (
	defaultMachineNetwork = netip.MustParsePrefix("10.0.0.0/16")
	defaultClusterNetwork = netip.MustParsePrefix("10.128.0.0/14")
	defaultServiceNetwork = netip.MustParsePrefix("172.30.0.0/16")
)

const (
	networkType        = "OVNKubernetes"
	defaultHostPrefix4 = 23
	hostPrefix6        = 64
)

type named struct {
	field  string
	prefix netip.Prefix
}

func (r *reader) networking(c *Config, raw *rawConfig) {
	n := raw.Networking
	r.oneOf("networking.networkType", n.NetworkType, networkType)
	c.Networking.NetworkType = networkType
	var all []named
	add := func(field, text string) (netip.Prefix, bool) {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			r.fault(inputs.ErrInvalid, field, "write a network such as 192.0.2.0/24", "%q is not a network", text)
			return p, false
		case p.Masked() != p:
			r.fault(inputs.ErrInvalid, field, "write "+p.Masked().String(), "%q has bits set in the part of the hosts", text)
			return p, false
		}
		all = append(all, named{field, p})
		return p, true
	}
	for i, m := range n.MachineNetwork {
		if p, ok := add(fmt.Sprintf("networking.machineNetwork[%d].cidr", i), m.CIDR); ok {
			c.Networking.MachineNetwork = append(c.Networking.MachineNetwork, p)
		}
	}
	for i, m := range n.ClusterNetwork {
		at := fmt.Sprintf("networking.clusterNetwork[%d]", i)
		if p, ok := add(at+".cidr", m.CIDR); ok {
			c.Networking.ClusterNetwork = append(c.Networking.ClusterNetwork, ClusterNetwork{CIDR: p, HostPrefix: r.hostPrefix(at, p, m.HostPrefix)})
		}
	}
	for i, text := range n.ServiceNetwork {
		at := fmt.Sprintf("networking.serviceNetwork[%d]", i)
		if p, ok := add(at, text); ok {
			if p.Bits() > p.Addr().BitLen()-4 {
				r.fault(inputs.ErrInvalid, at, "choose a larger one, such as 172.30.0.0/16", "%s has no tenth address, which is the cluster's DNS", p)
			}
			c.Networking.ServiceNetwork = append(c.Networking.ServiceNetwork, p)
		}
	}
	if len(n.MachineNetwork) == 0 {
		c.Networking.MachineNetwork = []netip.Prefix{defaultMachineNetwork}
		all = append(all, named{"networking.machineNetwork", defaultMachineNetwork})
	}
	if len(n.ClusterNetwork) == 0 {
		c.Networking.ClusterNetwork = []ClusterNetwork{{defaultClusterNetwork, defaultHostPrefix4}}
		all = append(all, named{"networking.clusterNetwork", defaultClusterNetwork})
	}
	if len(n.ServiceNetwork) == 0 {
		c.Networking.ServiceNetwork = []netip.Prefix{defaultServiceNetwork}
		all = append(all, named{"networking.serviceNetwork", defaultServiceNetwork})
	}
	for _, a := range all {
		for _, p := range unusable {
			if a.prefix.Overlaps(p) {
				r.fault(inputs.ErrInvalid, a.field, "choose a network of machines", "%s has loopback, link-local or multicast addresses of %s", a.prefix, p)
			}
		}
	}
	all = append(r.internal(), all...)
	for i, a := range all {
		for _, b := range all[:i] {
			if a.prefix.Overlaps(b.prefix) {
				r.fault(inputs.ErrOverlap, a.field, "choose networks that do not overlap; those that are not given have defaults", "%s overlaps %s of %s", a.prefix, b.prefix, b.field)
			}
		}
	}
	r.families(c)
}

// unusable are networks of which no node, pod or Service can have an address. The other half of IPv4's link-local
// addresses are OVN-Kubernetes' own.
var unusable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.128.0/17"), netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// internal returns the networks of OVN-Kubernetes itself: defaults of openshift/api, or those of a manifest.
// The cluster-network-operator refuses an overlap after hours (U-INS-33).
func (r *reader) internal() []named {
	o := cmp.Or(r.OVNKubernetes, &operatorv1.OVNKubernetesConfig{})
	four, six := cmp.Or(o.IPv4, &operatorv1.IPv4OVNKubernetesConfig{}), cmp.Or(o.IPv6, &operatorv1.IPv6OVNKubernetesConfig{})
	gateway := cmp.Or(o.GatewayConfig, &operatorv1.GatewayConfig{})
	var list []named
	for _, n := range []struct{ name, value string }{
		{"join network", cmp.Or(four.InternalJoinSubnet, o.V4InternalSubnet, "100.64.0.0/16")},
		{"join network", cmp.Or(six.InternalJoinSubnet, o.V6InternalSubnet, "fd98::/64")},
		{"transit switch network", cmp.Or(four.InternalTransitSwitchSubnet, "100.88.0.0/16")},
		{"transit switch network", cmp.Or(six.InternalTransitSwitchSubnet, "fd97::/64")},
		{"masquerade network", cmp.Or(gateway.IPv4.InternalMasqueradeSubnet, "169.254.0.0/17")},
		{"masquerade network", cmp.Or(gateway.IPv6.InternalMasqueradeSubnet, "fd69::/112")},
	} {
		p, err := netip.ParsePrefix(n.value)
		if err != nil {
			r.fault(inputs.ErrInvalid, "networking", "correct the manifest of kind Network of operator.openshift.io",
				"the %s that it gives to OVN-Kubernetes is not a network: %q", n.name, n.value)
			continue
		}
		list = append(list, named{"OVN-Kubernetes' own " + n.name, p.Masked()})
	}
	return list
}

func (r *reader) hostPrefix(at string, network netip.Prefix, length int32) int32 {
	switch {
	case network.Addr().Is6() && length == 0:
		length = hostPrefix6
	case length == 0:
		length = defaultHostPrefix4
	}
	switch {
	case network.Addr().Is6() && length != hostPrefix6:
		r.fault(inputs.ErrInvalid, at+".hostPrefix", "write 64", "%d is not 64, the prefix length of a node's range in an IPv6 network", length)
	case int(length) < network.Bits() || int(length) > network.Addr().BitLen()-2:
		r.fault(inputs.ErrInvalid, at+".hostPrefix", fmt.Sprintf("write a number from %d to %d", network.Bits(), network.Addr().BitLen()-2),
			"a range of /%d does not fit into %s, or has no address for pods", length, network)
	}
	return length
}

// families checks that pods, services and machines have the same address families in the same order, with one service
// network each.
func (r *reader) families(c *Config) {
	n := c.Networking
	count := func(prefixes []netip.Prefix) (four, six int) {
		for _, p := range prefixes {
			if p.Addr().Is4() {
				four++
			} else {
				six++
			}
		}
		return four, six
	}
	var pods []netip.Prefix
	for _, p := range n.ClusterNetwork {
		pods = append(pods, p.CIDR)
	}
	if len(pods) == 0 || len(n.ServiceNetwork) == 0 || len(n.MachineNetwork) == 0 {
		return // a fault already
	}
	services4, services6 := count(n.ServiceNetwork)
	pods4, pods6 := count(pods)
	machines4, machines6 := count(n.MachineNetwork)
	const advice = "give each a network of the same families, or none"
	if services4 > 1 || services6 > 1 {
		r.fault(inputs.ErrInvalid, "networking.serviceNetwork", "keep one of each family", "there are several networks of one address family")
	}
	if (services4 > 0) != (pods4 > 0) || (services6 > 0) != (pods6 > 0) {
		r.fault(inputs.ErrInvalid, "networking.clusterNetwork", advice, "pods and services have different address families")
	} else if pods[0].Addr().Is4() != n.ServiceNetwork[0].Addr().Is4() {
		r.fault(inputs.ErrInvalid, "networking.clusterNetwork", "put the same family first", "pods and services have another address family first")
	}
	if (services4 > 0) == (pods4 > 0) && (services6 > 0) == (pods6 > 0) && ((services4 > 0 && machines4 == 0) || (services6 > 0 && machines6 == 0)) {
		r.fault(inputs.ErrInvalid, "networking.machineNetwork", advice, "the machine has no address of a family that services have")
	}
}
