// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/solonode/sno/render/files"
)

// operatorKinds are the kinds whose CRDs only a cluster operator installs, with the CRD's plural name.
var operatorKinds = map[schema.GroupKind]string{
	{Group: "network.openshift.io", Kind: "ClusterNetwork"}:                   "clusternetworks",
	{Group: "machineconfiguration.openshift.io", Kind: "ControllerConfig"}:    "controllerconfigs",
	{Group: "network.openshift.io", Kind: "EgressNetworkPolicy"}:              "egressnetworkpolicies",
	{Group: "network.openshift.io", Kind: "HostSubnet"}:                       "hostsubnets",
	{Group: "whereabouts.cni.cncf.io", Kind: "IPPool"}:                        "ippools",
	{Group: "network.openshift.io", Kind: "NetNamespace"}:                     "netnamespaces",
	{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}:           "network-attachment-definitions",
	{Group: "whereabouts.cni.cncf.io", Kind: "OverlappingRangeIPReservation"}: "overlappingrangeipreservations",
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotClass"}:           "volumesnapshotclasses",
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotContent"}:         "volumesnapshotcontents",
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:                "volumesnapshots",
}

// manifests finds objects that cannot be applied in the bootstrap phase (R-BIP-21, U-INS-11), unless the user's
// manifests have the CRD. Lists are refused when the manifests are merged.
func (c *checker) manifests(context.Context) []Finding {
	const advice = "remove it from the manifests, and apply it when the installation has ended"
	var found []Finding
	var all []object
	defined := map[string]bool{}
	for _, f := range c.Manifests {
		objects, err := decode(f)
		if err != nil {
			found = append(found, failed("correct it, or remove it", "%s: %v", f.Path, err))
		}
		all = append(all, objects...)
		for _, o := range objects {
			defined[o.GetName()] = defined[o.GetName()] || o.GetKind() == "CustomResourceDefinition"
		}
	}
	for _, o := range all {
		kind := o.GroupVersionKind().GroupKind()
		plural, isOperators := operatorKinds[kind]
		if crd := plural + "." + kind.Group; isOperators && !defined[crd] {
			found = append(found, failed(advice, "%s: %s %s: a cluster operator installs the CRD %s, after the restart",
				o.file, kind.Kind, o.GetName(), crd))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("%d manifests, and none needs a CRD of a cluster operator", len(c.Manifests)))
	}
	return found
}

type object struct {
	unstructured.Unstructured
	file string
}

func decode(f files.File) ([]object, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Content), 4096)
	var found []object
	for {
		o := object{file: f.Path}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return found, err
		}
		found = append(found, o)
	}
}
