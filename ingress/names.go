// SPDX-License-Identifier: Apache-2.0

package ingress

// Name is the module's name, in its field owner, annotations, metrics and flags.
const Name = "ingress"

// Names of the objects of a cluster that the module knows.
const (
	// IngressControllerNamespace and IngressControllerName are the key of the default IngressController.
	IngressControllerNamespace = "openshift-ingress-operator"
	IngressControllerName      = "default"
	// RouterNamespace and RouterName are the key of its Deployment.
	RouterNamespace = "openshift-ingress"
	RouterName      = "router-default"
	// ConfigName is the name of the cluster's only Infrastructure and Ingress.
	ConfigName = "cluster"
)
