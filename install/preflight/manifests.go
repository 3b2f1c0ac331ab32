// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/solonode/sno/install/manifests"
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

// releaseGroups are groups with kinds of a release, besides those of Kubernetes. Others come with operators that the
// operator-lifecycle-manager installs later.
var releaseGroups = []string{
	"apiextensions.k8s.io", "apiregistration.k8s.io", "autoscaling.openshift.io", "cluster.x-k8s.io", "gateway.networking.k8s.io", "infrastructure.cluster.x-k8s.io",
	"ipam.cluster.x-k8s.io", "k8s.cni.cncf.io", "k8s.ovn.org", "metal3.io", "migration.k8s.io", "monitoring.coreos.com", "olm.operatorframework.io", "operators.coreos.com",
	"performance.openshift.io", "policy.networking.k8s.io", "snapshot.storage.k8s.io", "tuned.openshift.io", "whereabouts.cni.cncf.io",
	// Those of openshift/api.
	"apiextensions.openshift.io", "apiserver.openshift.io", "apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "cloud.network.openshift.io",
	"cloudcredential.openshift.io", "config.openshift.io", "console.openshift.io", "controlplane.operator.openshift.io", "etcd.openshift.io", "helm.openshift.io", "image.openshift.io",
	"imageregistry.operator.openshift.io", "ingress.operator.openshift.io", "insights.openshift.io", "machine.openshift.io", "machineconfiguration.openshift.io", "monitoring.openshift.io",
	"network.openshift.io", "network.operator.openshift.io", "oauth.openshift.io", "operator.openshift.io", "project.openshift.io", "quota.openshift.io", "route.openshift.io",
	"samples.operator.openshift.io", "security.internal.openshift.io", "security.openshift.io", "sharedresource.openshift.io", "template.openshift.io", "user.openshift.io",
}

// manifests finds objects that cannot be applied in the bootstrap phase (R-BIP-21, U-INS-11), unless the user's
// manifests have the CRD. Lists are refused when the manifests are merged.
func (c *checker) manifests(context.Context) []Finding {
	const advice = "remove it from the manifests, and apply it when the installation has ended"
	var found []Finding
	type object struct {
		unstructured.Unstructured
		file string
	}
	var all []object
	defined, groups := map[string]bool{}, map[string]bool{}
	for _, f := range c.Manifests {
		objects, err := manifests.Objects(f)
		if err != nil {
			found = append(found, failed("correct it, or remove it", "%v", err))
		}
		for _, o := range objects {
			all = append(all, object{o, f.Path})
			if o.GetKind() == "CustomResourceDefinition" {
				defined[o.GetName()] = true
				_, group, _ := strings.Cut(o.GetName(), ".")
				groups[group] = true
			}
		}
	}
	for _, o := range all {
		kind := o.GroupVersionKind().GroupKind()
		plural, isOperators := operatorKinds[kind]
		served := kind.Group == "" || groups[kind.Group] || slices.Contains(releaseGroups, kind.Group) || scheme.Scheme.IsGroupRegistered(kind.Group)
		if crd := plural + "." + kind.Group; isOperators && !defined[crd] {
			found = append(found, failed(advice, "%s: %s %s: a cluster operator installs the CRD %s, after the restart",
				o.file, kind.Kind, o.GetName(), crd))
		}
		if !served {
			// The apply would wait for it until its limit, an hour.
			report := failed
			if c.Creating {
				report = warning
			}
			found = append(found, report(advice+", or add its CRD", "%s: %s %s: neither Kubernetes nor a release serves kinds of %s", o.file, kind.Kind, o.GetName(), kind.Group))
		}
	}
	if len(found) == 0 {
		found = append(found, ok("%d manifests, and none needs a CRD of a cluster operator", len(c.Manifests)))
	}
	return found
}
