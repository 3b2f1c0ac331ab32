// SPDX-License-Identifier: Apache-2.0

package export

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1 "github.com/openshift/api/config/v1"
)

// withoutStatusSubresource lists the kinds whose status is created with the object.
var withoutStatusSubresource = map[schema.GroupKind]bool{
	{Group: configv1.GroupName, Kind: "Network"}: true,
}

// setOnUpdate lists fields of status.nodeStatuses that the API rejects when a node is added (U-REN-30).
var setOnUpdate = []string{"currentRevision", "targetRevision"}

// StatusRequests returns the bodies of requests to the status subresource: two if some fields can only be updated.
func (m Manifest) StatusRequests() []*unstructured.Unstructured {
	status, has := m.Object.Object["status"]
	if !has || withoutStatusSubresource[m.Object.GroupVersionKind().GroupKind()] {
		return nil
	}
	last := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	last.SetGroupVersionKind(m.Object.GroupVersionKind())
	last.SetName(m.Object.GetName())
	last.SetNamespace(m.Object.GetNamespace())
	last = last.DeepCopy()

	first, early := last.DeepCopy(), false
	nodes, _, _ := unstructured.NestedSlice(first.Object, "status", "nodeStatuses")
	for _, node := range nodes {
		for _, field := range setOnUpdate {
			if node, ok := node.(map[string]any); ok && node[field] != nil {
				delete(node, field)
				early = true
			}
		}
	}
	if !early {
		return []*unstructured.Unstructured{last}
	}
	first.Object["status"].(map[string]any)["nodeStatuses"] = nodes
	return []*unstructured.Unstructured{first, last}
}
