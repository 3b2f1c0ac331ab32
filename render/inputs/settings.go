package inputs

import (
	"net/netip"
	"time"
)

// Profile says whose images and commands the static pods have. Files, objects and labels are the same in each.
type Profile string

const (
	// OpenShift has the images of a release payload, the hyperkube commands and the sidecars of today's operators.
	OpenShift Profile = "openshift"
	// Kubernetes has the plain images and commands of Kubernetes.
	Kubernetes Profile = "kubernetes"
)

// Settings are what every component gets: the checked input and what the caller chose.
type Settings struct {
	Cluster *Cluster
	Profile Profile
	// Images are pull specifications by the names that a release payload has for them; in profile kubernetes the names are
	// kube-apiserver, kube-controller-manager, kube-scheduler and etcd.
	Images map[string]string
	// Version is Kubernetes' version without a v, such as 1.35.2.
	Version string
	// Nodes are the control-plane nodes, sorted by name.
	Nodes []Node
	// Validity is how long certificates last that nobody renews, and their signers.
	Validity time.Duration
}

// Node is a control-plane node.
type Node struct {
	Name string
	// Addresses are the internal addresses, in the order of the Node's status. There is at least one.
	Addresses []netip.Addr
}
