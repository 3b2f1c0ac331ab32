// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/files"
)

// Node returns the manifest of the control-plane node for sno-render, with its primary address first. It is not
// applied, since a kubelet registers its own Node.
func Node(name string, addresses []netip.Addr) (files.File, error) {
	var list []any
	for _, a := range addresses {
		list = append(list, map[string]any{"type": string(corev1.NodeInternalIP), "address": a.String()})
	}
	return File("node.yaml", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			corev1.LabelHostname: name, "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": "",
		}},
		"status": map[string]any{"addresses": append(list, map[string]any{"type": string(corev1.NodeHostName), "address": name})},
	}})
}
