// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"maps"
	"slices"
	"strings"
)

// fillStatuses fills empty statuses as operators would (U-REN-32). It implements R-REN-11.
func (r *reader) fillStatuses() {
	network := r.cluster.Network
	if len(network.Status.ClusterNetwork) == 0 {
		network.Status.ClusterNetwork = slices.Clone(network.Spec.ClusterNetwork)
	}
	if len(network.Status.ServiceNetwork) == 0 {
		network.Status.ServiceNetwork = slices.Clone(network.Spec.ServiceNetwork)
	}
	if network.Status.NetworkType == "" {
		network.Status.NetworkType = network.Spec.NetworkType
	}

	proxy := r.cluster.Proxy
	if proxy.Status.HTTPProxy == "" && proxy.Status.HTTPSProxy == "" {
		proxy.Status.HTTPProxy, proxy.Status.HTTPSProxy = proxy.Spec.HTTPProxy, proxy.Spec.HTTPSProxy
	}
	if proxy.Status.NoProxy == "" && (proxy.Status.HTTPProxy != "" || proxy.Status.HTTPSProxy != "") {
		proxy.Status.NoProxy = r.noProxy()
	}
}

// noProxy returns spec.noProxy and the cluster's own networks, addresses and names.
func (r *reader) noProxy() string {
	if r.cluster.Proxy.Spec.NoProxy == "*" {
		return "*"
	}
	own := map[string]bool{"127.0.0.1": true, "localhost": true, ".svc": true, ".cluster.local": true}
	for entry := range strings.SplitSeq(r.cluster.Proxy.Spec.NoProxy, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			own[entry] = true
		}
	}
	for _, entry := range r.cluster.Network.Status.ClusterNetwork {
		own[entry.CIDR] = true
	}
	for _, entry := range r.cluster.Network.Status.ServiceNetwork {
		own[entry] = true
	}
	for _, network := range r.machineNetworks() {
		own[network.prefix.String()] = true
	}
	own[hostOf(r.cluster.Infrastructure.Status.APIServerInternalURL)] = true
	for _, node := range r.cluster.controlPlane() {
		for _, address := range addressesOf(node) {
			own[address.ip.String()] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(own)), ",")
}
