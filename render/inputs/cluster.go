// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/document"
)

// Cluster is the content of a folder. After Read without an error every resource of config.openshift.io is set.
type Cluster struct {
	Infrastructure *configv1.Infrastructure
	Network        *configv1.Network
	APIServer      *configv1.APIServer
	Authentication *configv1.Authentication
	OAuth          *configv1.OAuth
	Image          *configv1.Image
	Scheduler      *configv1.Scheduler
	FeatureGate    *configv1.FeatureGate
	Proxy          *configv1.Proxy
	Ingress        *configv1.Ingress
	DNS            *configv1.DNS
	Node           *configv1.Node

	// Nodes are the core Nodes of all roles, sorted by name.
	Nodes []*corev1.Node
	// Others are all other objects in the order of files and documents.
	Others []*unstructured.Unstructured

	// Warnings are fields that are set and have no effect, or none before an operator runs.
	Warnings document.Faults

	// openShiftOnly are fields that are set and have an effect in profile openshift only.
	openShiftOnly document.Faults
}
