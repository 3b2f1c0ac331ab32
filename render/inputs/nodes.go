// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/solonode/sno/topology"
)

const (
	labelControlPlane = "node-role.kubernetes.io/control-plane"
	labelMaster       = "node-role.kubernetes.io/master"
)

func isControlPlane(node *corev1.Node) bool {
	_, isNew := node.Labels[labelControlPlane]
	_, isOld := node.Labels[labelMaster]
	return isNew || isOld
}

type address struct {
	node     *corev1.Node
	field    string
	ip       netip.Addr
	internal bool
}

// addressesOf returns the valid addresses.
func addressesOf(node *corev1.Node) []address {
	var found []address
	for i, entry := range node.Status.Addresses {
		ip, err := netip.ParseAddr(entry.Address)
		if err == nil && (entry.Type == corev1.NodeInternalIP || entry.Type == corev1.NodeExternalIP) {
			found = append(found, address{node, fmt.Sprintf("status.addresses[%d]", i), ip.Unmap(), entry.Type == corev1.NodeInternalIP})
		}
	}
	return found
}

func (r *reader) nodeSource(node *corev1.Node) *source {
	return r.sources[identity{"", "Node", "", node.Name}]
}

func (c *Cluster) controlPlane() []*corev1.Node {
	var nodes []*corev1.Node
	for _, node := range c.Nodes {
		if isControlPlane(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (r *reader) checkNodes() {
	taken := map[netip.Addr]address{}
	for _, node := range r.cluster.Nodes {
		s := r.nodeSource(node)
		for _, problem := range validation.IsDNS1123Subdomain(node.Name) {
			r.addFault(s, ErrInvalid, "metadata.name", problem, "use the host name")
		}
		for i, entry := range node.Status.Addresses {
			if _, err := netip.ParseAddr(entry.Address); err != nil &&
				(entry.Type == corev1.NodeInternalIP || entry.Type == corev1.NodeExternalIP) {
				r.addFault(s, ErrInvalid, fmt.Sprintf("status.addresses[%d].address", i), fmt.Sprintf("%q is not an address", entry.Address), "")
			}
		}
		internal := 0
		for _, address := range addressesOf(node) {
			if address.internal {
				internal++
			}
			if address.ip.IsLoopback() || address.ip.IsUnspecified() || address.ip.IsMulticast() {
				r.addFault(s, ErrInvalid, address.field, fmt.Sprintf("%s cannot be reached by other hosts", address.ip), "use the node's own address")
			}
			if other, ok := taken[address.ip]; ok && other.node != node {
				where := r.nodeSource(other.node)
				r.addFault(s, ErrConflict, address.field, fmt.Sprintf("%s is the address of Node %s too, at %s:%d", address.ip, other.node.Name,
					where.file, where.line(other.field)), "each node needs its own")
			}
			taken[address.ip] = address
		}
		if isControlPlane(node) && internal == 0 {
			r.addFault(s, ErrMissing, "status.addresses", "a control-plane node without an address of type InternalIP",
				"etcd and kube-apiserver listen on it; add it")
		}
	}

	controlPlane := r.cluster.controlPlane()
	if len(controlPlane) == 0 {
		r.faults = append(r.faults, Fault{
			Object: "Node", Problem: "no control-plane node", Kind: ErrMissing,
			Advice: "add a core/v1 Node with the label " + labelControlPlane + " and its addresses",
		})
		return
	}
	infrastructure := r.cluster.Infrastructure
	if infrastructure == nil {
		return
	}
	fits := true
	switch infrastructure.Status.ControlPlaneTopology {
	case configv1.SingleReplicaTopologyMode:
		fits = len(controlPlane) == 1
	case configv1.HighlyAvailableTopologyMode:
		fits = len(controlPlane) >= 3
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.ExternalTopologyMode:
		// Refused by Fields.
	}
	if !fits {
		r.addFault(r.configSource("Infrastructure"), ErrInvalid, topology.FieldControlPlaneTopology,
			fmt.Sprintf("%s does not match %d control-plane nodes", infrastructure.Status.ControlPlaneTopology, len(controlPlane)),
			"SingleReplica is for one, HighlyAvailable for three or more")
	}
}

// checkInfrastructure checks topologies, names and URLs of the Infrastructure.
func (r *reader) checkInfrastructure() {
	infrastructure := r.cluster.Infrastructure
	if infrastructure == nil {
		return
	}
	s := r.configSource("Infrastructure")
	read, err := topology.FromInfrastructure(infrastructure)
	if err != nil {
		r.addFault(s, ErrInvalid, "status", err.Error(), "")
	}
	for _, finding := range read.Findings() {
		if finding.Problem == topology.ProblemEmpty {
			r.addFault(s, ErrMissing, finding.Field, "empty", "set it to SingleReplica or HighlyAvailable")
		}
	}
	if infrastructure.Status.InfrastructureName == "" {
		r.addFault(s, ErrMissing, "status.infrastructureName", "empty", "set the cluster's unique name")
	}
	for field, value := range map[string]string{
		"status.apiServerURL": infrastructure.Status.APIServerURL, "status.apiServerInternalURI": infrastructure.Status.APIServerInternalURL,
	} {
		if hostOf(value) == "" || !strings.HasPrefix(value, "https://") {
			r.addFault(s, ErrInvalid, field, fmt.Sprintf("%q is not an https URL", value), "such as https://api.example.com:6443")
		}
	}
}
