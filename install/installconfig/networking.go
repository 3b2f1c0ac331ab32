// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/render/document"
	"github.com/solonode/sno/render/inputs"
)

// Networking is the section networking.
type Networking struct {
	NetworkType    string
	MachineNetwork []netip.Prefix
	ClusterNetwork []ClusterNetwork
	ServiceNetwork []netip.Prefix
}

// ClusterNetwork is a range of pod addresses, and the prefix length of a node's range.
type ClusterNetwork struct {
	CIDR       netip.Prefix
	HostPrefix int32
}

// networks is the section in the file.
type networks struct {
	NetworkType    string         `json:"networkType,omitempty"`
	MachineNetwork []networkEntry `json:"machineNetwork"`
	ClusterNetwork []podsEntry    `json:"clusterNetwork"`
	ServiceNetwork []string       `json:"serviceNetwork"`
}

type networkEntry struct {
	CIDR string `json:"cidr"`
}

type podsEntry struct {
	CIDR       string `json:"cidr"`
	HostPrefix int32  `json:"hostPrefix"`
}

func (n Networking) machines() (entries []networkEntry) {
	for _, p := range n.MachineNetwork {
		entries = append(entries, networkEntry{p.String()})
	}
	return entries
}

func (n Networking) pods() (entries []podsEntry) {
	for _, p := range n.ClusterNetwork {
		entries = append(entries, podsEntry{p.CIDR.String(), p.HostPrefix})
	}
	return entries
}

// Defaults, as in openshift-install.
var (
	networkType    = "OVNKubernetes"
	machineDefault = networkEntry{"10.0.0.0/16"}
	podsDefault    = podsEntry{CIDR: "10.128.0.0/14"}
	serviceDefault = "172.30.0.0/16"
)

type named struct {
	field  string
	prefix netip.Prefix
}

func (r *reader) networking(n networks) Networking {
	r.oneOf("networking.networkType", n.NetworkType, networkType)
	given := n
	if len(n.MachineNetwork) == 0 {
		n.MachineNetwork = []networkEntry{machineDefault}
	}
	if len(n.ClusterNetwork) == 0 {
		n.ClusterNetwork = []podsEntry{podsDefault}
	}
	if len(n.ServiceNetwork) == 0 {
		n.ServiceNetwork = []string{serviceDefault}
	}
	read := Networking{NetworkType: networkType}
	var all []named
	add := func(section string, index, given int, below, text string) (netip.Prefix, bool) {
		at := "networking." + section
		if given > 0 {
			at = document.Path("%s[%d]%s", at, index, below).String()
		}
		p, err := inputs.ParseNetwork(document.Path("%s", at), text)
		if err != nil {
			r.add(err)
			return p, false
		}
		all = append(all, named{at, p})
		return p, true
	}
	for i, entry := range n.MachineNetwork {
		if p, ok := add("machineNetwork", i, len(given.MachineNetwork), ".cidr", entry.CIDR); ok {
			r.documentation(all[len(all)-1])
			read.MachineNetwork = append(read.MachineNetwork, p)
		}
	}
	for i, entry := range n.ClusterNetwork {
		if p, ok := add("clusterNetwork", i, len(given.ClusterNetwork), ".cidr", entry.CIDR); ok {
			length, err := inputs.HostPrefix(document.Path("networking.clusterNetwork[%d].hostPrefix", i), p, int(entry.HostPrefix))
			if err != nil {
				r.add(err)
			}
			read.ClusterNetwork = append(read.ClusterNetwork, ClusterNetwork{CIDR: p, HostPrefix: int32(length)}) //nolint:gosec // at most 126
		}
	}
	for i, text := range n.ServiceNetwork {
		if p, ok := add("serviceNetwork", i, len(given.ServiceNetwork), "", text); ok {
			if p.Bits() > p.Addr().BitLen()-4 {
				r.invalid(all[len(all)-1].field, text, "it has no tenth address, which is the cluster's DNS; choose a larger one, such as 172.30.0.0/16")
			}
			read.ServiceNetwork = append(read.ServiceNetwork, p)
		}
	}
	r.places(all)
	r.families(read)
	return read
}

// unusable are networks of which no node, pod or Service can have an address. The other half of IPv4's link-local
// addresses are OVN-Kubernetes' own.
var unusable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.128.0/17"), netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// documentation finds a network that etcd's render refuses, which would end the installation on the machine.
func (r *reader) documentation(n named) {
	for _, p := range []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")} {
		if r.Release && p.Contains(n.prefix.Addr()) {
			r.invalid(n.field, n.prefix.String(), fmt.Sprintf("%s is for documents, and the release refuses it; write the network of the machine", p))
		}
	}
}

func (r *reader) places(all []named) {
	for _, a := range all {
		for _, p := range unusable {
			if a.prefix.Overlaps(p) {
				r.invalid(a.field, a.prefix.String(), fmt.Sprintf("it has loopback, link-local or multicast addresses of %s; choose a network of machines", p))
			}
		}
	}
	all = append(r.internal(), all...)
	for i, a := range all {
		for _, b := range all[:i] {
			if a.prefix.Overlaps(b.prefix) {
				r.invalid(a.field, a.prefix.String(), fmt.Sprintf("it overlaps %s of %s; choose networks that do not overlap; those that are not given have defaults", b.prefix, b.field))
			}
		}
	}
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
			r.invalid("networking", n.value, "the "+n.name+" that OVN-Kubernetes gets is not a network; correct the manifest of kind Network of operator.openshift.io")
			continue
		}
		list = append(list, named{"OVN-Kubernetes' own " + n.name, p.Masked()})
	}
	return list
}

// families checks that pods, services and machines have the same address families in the same order, with one service
// network each.
func (r *reader) families(n Networking) {
	var pods []netip.Prefix
	for _, p := range n.ClusterNetwork {
		pods = append(pods, p.CIDR)
	}
	if len(pods) == 0 || len(n.ServiceNetwork) == 0 || len(n.MachineNetwork) == 0 {
		return // a fault already
	}
	count := func(prefixes []netip.Prefix) (number [2]int) {
		for _, p := range prefixes {
			if p.Addr().Is4() {
				number[0]++
			} else {
				number[1]++
			}
		}
		return number
	}
	same, covered := true, true
	services, ofPods, machines := count(n.ServiceNetwork), count(pods), count(n.MachineNetwork)
	for family := range services {
		same = same && (services[family] > 0) == (ofPods[family] > 0)
		covered = covered && (services[family] == 0 || machines[family] > 0)
	}
	if slices.Max(services[:]) > 1 {
		r.invalid("networking.serviceNetwork", document.Omitted, "there are several networks of one address family; keep one of each family")
	}
	const advice = "; give each a network of the same families, or none"
	switch {
	case !same:
		r.invalid("networking.clusterNetwork", document.Omitted, "pods and services have different address families"+advice)
	case pods[0].Addr().Is4() != n.ServiceNetwork[0].Addr().Is4():
		r.invalid("networking.clusterNetwork", document.Omitted, "pods and services have another address family first; put the same family first")
	}
	if same && !covered {
		r.invalid("networking.machineNetwork", document.Omitted, "the machine has no address of a family that services have"+advice)
	}
}

// ErrNodeAddress is in the error of a node without an address in the machine networks.
var ErrNodeAddress = errors.New("no address of the node is in a machine network")

// NodeAddresses is what is known of a node's addresses before it boots.
type NodeAddresses struct {
	// Given are the chosen ones; empty means those of the machine in the machine networks.
	Given []netip.Addr
	// Static are the addresses in the network configuration.
	Static []netip.Prefix
	// Automatic4 and Automatic6 mean that the machine may have other addresses, from DHCP or router advertisements.
	Automatic4, Automatic6 bool
}

// CheckNode returns an error if no address of the node can be in a machine network, for each address family of the
// Services: etcd and the API server need one (R-BIP-19).
func (n Networking) CheckNode(a NodeAddresses) error {
	var errs []error
	for _, address := range a.Given {
		automatic := a.Automatic6
		if address.Is4() {
			automatic = a.Automatic4
		}
		switch {
		case !n.isMachine(address):
			errs = append(errs, fmt.Errorf("--node-ip %s: %w; networking.machineNetwork has %v", address, ErrNodeAddress, n.MachineNetwork))
		case !automatic && !slices.ContainsFunc(a.Static, func(p netip.Prefix) bool { return p.Addr() == address }):
			errs = append(errs, fmt.Errorf("--node-ip %s: %w: the network configuration does not set it", address, ErrNodeAddress))
		}
	}
	for _, family := range []struct {
		is4, automatic bool
		name           string
	}{{true, a.Automatic4, "IPv4"}, {false, a.Automatic6, "IPv6"}} {
		ofFamily := func(address netip.Addr) bool { return address.Is4() == family.is4 }
		switch {
		case !slices.ContainsFunc(n.ServiceNetwork, func(p netip.Prefix) bool { return ofFamily(p.Addr()) }):
		case len(a.Given) > 0:
			if !slices.ContainsFunc(a.Given, ofFamily) {
				errs = append(errs, fmt.Errorf("--node-ip: %w: Services have addresses of %s too, so give one of that family", ErrNodeAddress, family.name))
			}
		case !family.automatic && !slices.ContainsFunc(a.Static, func(p netip.Prefix) bool { return ofFamily(p.Addr()) && n.isMachine(p.Addr()) }):
			errs = append(errs, fmt.Errorf("the network configuration: %w of %s; it sets %v, and networking.machineNetwork has %v", ErrNodeAddress, family.name, a.Static, n.MachineNetwork))
		}
	}
	return errors.Join(errs...)
}

func (n Networking) isMachine(address netip.Addr) bool {
	return slices.ContainsFunc(n.MachineNetwork, func(p netip.Prefix) bool { return p.Contains(address) })
}
