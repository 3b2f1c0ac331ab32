// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

const registryGroup = "imageregistry.operator.openshift.io"

// checkRegistry refuses settings with which the registry operator would change kube-apiserver's configuration later
// (R-REN-11, U-REN-33). Names that Image has are accepted.
func (r *reader) checkRegistry() {
	image := r.cluster.Image
	for _, other := range r.cluster.Others {
		gvk := other.GroupVersionKind()
		if image == nil || gvk.Group != registryGroup || gvk.Kind != "Config" || other.GetName() != clusterName {
			continue
		}
		s := r.sources[identity{gvk.Group, gvk.Kind, "", clusterName}]
		state, _, _ := unstructured.NestedString(other.Object, "spec", "managementState")
		if state != "Managed" {
			continue
		}
		if image.Status.InternalRegistryHostname == "" {
			r.report(s, field.Forbidden(field.NewPath("spec", "managementState"), "the image registry operator would change kube-apiserver's configuration later; "+
				"set managementState to Removed, or status.internalRegistryHostname of Image "+clusterName+" to image-registry.openshift-image-registry.svc:5000"))
		}
		known := slices.Concat(image.Spec.ExternalRegistryHostnames, image.Status.ExternalRegistryHostnames)
		hosts := map[string]string{}
		routes, _, _ := unstructured.NestedSlice(other.Object, "spec", "routes")
		for i, route := range routes {
			if route, ok := route.(map[string]any); ok {
				if host, _, _ := unstructured.NestedString(route, "hostname"); host != "" {
					hosts[fmt.Sprintf("spec.routes[%d].hostname", i)] = host
				}
			}
		}
		if isDefault, _, _ := unstructured.NestedBool(other.Object, "spec", "defaultRoute"); isDefault && r.cluster.Ingress != nil {
			hosts["spec.defaultRoute"] = "default-route-openshift-image-registry." + r.cluster.Ingress.Spec.Domain
		}
		for at, host := range hosts {
			if !slices.Contains(known, host) {
				r.report(s, field.Forbidden(document.Path("%s", at), "the image registry operator would add "+host+" to kube-apiserver's configuration later; "+
					"add it to spec.externalRegistryHostnames of Image "+clusterName+", or remove the route"))
			}
		}
	}
}
