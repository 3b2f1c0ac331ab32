// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/preflight"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/testcluster/apiserver"
)

// later are kinds that are not served before the restart: those of the document, and of operators that are added later.
var later = []string{
	"network.openshift.io/v1/ClusterNetwork", "machineconfiguration.openshift.io/v1/ControllerConfig", "network.openshift.io/v1/EgressNetworkPolicy",
	"network.openshift.io/v1/HostSubnet", "whereabouts.cni.cncf.io/v1alpha1/IPPool", "network.openshift.io/v1/NetNamespace",
	"k8s.cni.cncf.io/v1/NetworkAttachmentDefinition", "whereabouts.cni.cncf.io/v1alpha1/OverlappingRangeIPReservation",
	"snapshot.storage.k8s.io/v1/VolumeSnapshotClass", "snapshot.storage.k8s.io/v1/VolumeSnapshotContent", "snapshot.storage.k8s.io/v1/VolumeSnapshot",
	"lvm.topolvm.io/v1alpha1/LVMCluster", "nmstate.io/v1/NodeNetworkConfigurationPolicy", "sriovnetwork.openshift.io/v1/SriovNetwork", "ptp.openshift.io/v1/PtpConfig",
	"argoproj.io/v1alpha1/Application", "example.com/v1/Unknown",
}

const ownKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lvmclusters.lvm.topolvm.io}
spec:
  group: lvm.topolvm.io
  scope: Namespaced
  names: {kind: LVMCluster, plural: lvmclusters, singular: lvmcluster, listKind: LVMClusterList}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func manifest(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a, namespace: default}\n", apiVersion, kind)
}

// accepted reports whether preflight finds nothing wrong with a manifest.
func accepted(t *testing.T, texts ...string) bool {
	t.Helper()
	var list []files.File
	for i, text := range texts {
		list = append(list, files.File{Path: fmt.Sprintf("%d.yaml", i), Content: []byte(text)})
	}
	return preflight.Failed(preflight.Check(t.Context(), preflight.Input{Checks: []string{preflight.Manifests}, Manifests: list})) == nil
}

// unserved applies the manifests, and returns the files whose kind the server never served.
func unserved(t *testing.T, server *apiserver.Server, folder fstest.MapFS) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	report, err := apply.Run(ctx, apply.Options{
		Config: server.Config(t, "install", "system:masters"), Interval: 100 * time.Millisecond, Folders: []apply.Folder{{Name: "manifests", FS: folder}},
	}, nil)
	if len(report.Failed) == 0 {
		apiserver.NoError(t, err)
	}
	var names []string
	for _, f := range report.Failed {
		if meta.IsNoMatchError(f.Err) {
			names = append(names, f.File)
		}
	}
	return names
}

// Preflight and the apply phase agree which kinds the API server serves before the restart, for all kinds of Kubernetes
// and many of a release, and for those that come later (R-BIP-21).
func TestKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{
		"apiservers.config.openshift.io", "clusterversions.config.openshift.io", "images.config.openshift.io", "infrastructures.config.openshift.io", "ingresses.config.openshift.io",
		"networks.config.openshift.io", "schedulers.config.openshift.io", "consoles.operator.openshift.io", "etcds.operator.openshift.io", "ingresscontrollers.operator.openshift.io",
		"machineconfigs.machineconfiguration.openshift.io", "machineconfigpools.machineconfiguration.openshift.io", "kubeletconfigs.machineconfiguration.openshift.io",
		"dnses.operator.openshift.io", "kubeapiservers.operator.openshift.io",
	}})
	lists, err := kubernetes.NewForConfigOrDie(server.Config(t, "admin", "system:masters")).Discovery().ServerPreferredResources()
	apiserver.NoError(t, err)
	served := fstest.MapFS{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "patch") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			text := manifest(list.GroupVersion, r.Kind)
			served[fmt.Sprintf("%s.%s.yaml", r.Kind, strings.ReplaceAll(list.GroupVersion, "/", "."))] = &fstest.MapFile{Data: []byte(text)}
			if !accepted(t, text) {
				t.Errorf("preflight refuses %s of %s, which is served", r.Kind, list.GroupVersion)
			}
		}
	}
	if len(served) < 60 {
		t.Errorf("only %d kinds", len(served))
	}
	if names := unserved(t, server, served); len(names) > 0 {
		t.Errorf("not served: %v", names)
	}
	unknown := fstest.MapFS{}
	for _, name := range later {
		i := strings.LastIndex(name, "/")
		text := manifest(name[:i], name[i+1:])
		unknown[name[i+1:]+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		if accepted(t, text) {
			t.Errorf("preflight accepts %s, which nothing serves before the restart", name)
		}
	}
	if names := unserved(t, server, unknown); len(names) != len(later) {
		t.Errorf("only %v are not served", names)
	}
	own := manifest("lvm.topolvm.io/v1alpha1", "LVMCluster")
	if !accepted(t, own, ownKind) {
		t.Error("preflight refuses a kind whose definition is among the manifests")
	}
	if names := unserved(t, server, fstest.MapFS{"1.yaml": {Data: []byte(own)}, "2.yaml": {Data: []byte(ownKind)}}); len(names) > 0 {
		t.Errorf("with its definition not served: %v", names)
	}
}
