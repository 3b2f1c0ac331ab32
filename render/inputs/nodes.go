// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/document"
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

func (r *reader) nodeSource(node *corev1.Node) *document.Document {
	return r.sources[identity{"", "Node", "", node.Name}]
}

func (c *Cluster) controlPlane() []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(node *corev1.Node) bool { return !isControlPlane(node) })
}

func (r *reader) checkNodes() {
	taken := map[netip.Addr]address{}
	for _, node := range r.cluster.Nodes {
		s := r.nodeSource(node)
		for _, problem := range validation.IsDNS1123Subdomain(node.Name) {
			r.report(s, field.Invalid(field.NewPath("metadata", "name"), node.Name, problem+"; use the host name"))
		}
		for i, entry := range node.Status.Addresses {
			if _, err := netip.ParseAddr(entry.Address); err != nil &&
				(entry.Type == corev1.NodeInternalIP || entry.Type == corev1.NodeExternalIP) {
				r.report(s, field.Invalid(document.Path("status.addresses[%d].address", i), entry.Address, "write an IP address, such as 192.0.2.7"))
			}
		}
		internal := 0
		for _, address := range addressesOf(node) {
			if address.internal {
				internal++
			}
			if address.ip.IsLoopback() || address.ip.IsUnspecified() || address.ip.IsMulticast() {
				r.report(s, field.Invalid(document.Path("%s", address.field), address.ip.String(), "other hosts cannot reach it; use the node's own address"))
			}
			if other, ok := taken[address.ip]; ok && other.node != node {
				r.report(s, &field.Error{Type: field.ErrorTypeDuplicate, Field: address.field, BadValue: address.ip.String(), Detail: fmt.Sprintf(
					"it is the address of Node %s too, at %s; each node needs its own", other.node.Name, r.nodeSource(other.node).Place(other.field))})
			}
			taken[address.ip] = address
		}
		if isControlPlane(node) && internal == 0 {
			r.report(s, field.Required(field.NewPath("status", "addresses"), "a control-plane node has an address of type InternalIP, on which etcd and kube-apiserver listen"))
		}
	}

	controlPlane := r.cluster.controlPlane()
	if len(controlPlane) == 0 {
		r.missing("Node", "there is no control-plane node; add a core/v1 Node with the label "+labelControlPlane+" and its addresses")
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
		r.report(r.configSource("Infrastructure"), field.Invalid(document.Path(topology.FieldControlPlaneTopology), infrastructure.Status.ControlPlaneTopology,
			fmt.Sprintf("it does not match %d control-plane nodes; SingleReplica is for one, HighlyAvailable for three or more", len(controlPlane))))
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
		r.report(s, field.Invalid(field.NewPath("status"), document.Omitted, err.Error()))
	}
	for _, finding := range read.Findings() {
		if finding.Problem == topology.ProblemEmpty {
			r.report(s, field.Required(document.Path("%s", finding.Field), "set it to SingleReplica or HighlyAvailable"))
		}
	}
	if infrastructure.Status.InfrastructureName == "" {
		r.report(s, field.Required(field.NewPath("status", "infrastructureName"), "set the cluster's unique name"))
	}
	for at, value := range map[string]string{
		"apiServerURL": infrastructure.Status.APIServerURL, "apiServerInternalURI": infrastructure.Status.APIServerInternalURL,
	} {
		if hostOf(value) == "" || !strings.HasPrefix(value, "https://") {
			r.report(s, field.Invalid(field.NewPath("status", at), value, "write an https URL, such as https://api.example.com:6443"))
		}
	}
}
