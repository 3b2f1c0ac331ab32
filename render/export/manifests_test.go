// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	configv1 "github.com/openshift/api/config/v1"
	configv1alpha1 "github.com/openshift/api/config/v1alpha1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/solonode/sno/render/files"
)

const target = "openshift-kube-apiserver"

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func small() []runtime.Object {
	owned := named(target, "revision-status-1")
	owned.ResourceVersion, owned.UID, owned.Generation = "7", types.UID("1-2-3"), 3
	owned.CreationTimestamp = metav1.NewTime(time.Unix(1700000000, 0))
	owned.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", Operation: metav1.ManagedFieldsOperationApply}}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: types.UID("4")}}
	owned.Annotations = map[string]string{"operator.openshift.io/revision-ready": "true"}
	return []runtime.Object{
		&corev1.Service{ObjectMeta: named(target, "apiserver"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(6443), Protocol: corev1.ProtocolTCP}}}},
		&corev1.Secret{ObjectMeta: named(target, "encryption-config-1"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"encryption-config": {0, 255, '\n'}}},
		&corev1.ConfigMap{ObjectMeta: owned, Data: map[string]string{"revision": "1", "config.yaml": "a: b\n\n  c\t: \"yes\"\n"}},
		&rbacv1.RoleBinding{ObjectMeta: named(target, "b"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: target, Name: "localhost-recovery-client"}}},
		&rbacv1.Role{ObjectMeta: named(target, "a"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "system:openshift:controller:x"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:x"}}},
		&corev1.ServiceAccount{ObjectMeta: named(target, "localhost-recovery-client")},
		&schedulingv1.PriorityClass{ObjectMeta: named("", "openshift-user-critical"), Value: 1000},
		&corev1.ConfigMap{ObjectMeta: named("kube-system", "cluster-config-v1")},
		&corev1.Namespace{ObjectMeta: named("", target)},
		&configv1.Infrastructure{ObjectMeta: named("", "cluster"), Spec: configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: configv1.NonePlatformType}},
			Status: configv1.InfrastructureStatus{
				InfrastructureName: "sno-x7k2p", APIServerURL: "https://api.sno.example.com:6443", APIServerInternalURL: "https://api-int.sno.example.com:6443",
				ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
				CPUPartitioning: configv1.CPUPartitioningNone, PlatformStatus: &configv1.PlatformStatus{Type: configv1.NonePlatformType},
			}},
		&configv1.Network{ObjectMeta: named("", "cluster"),
			Spec: configv1.NetworkSpec{ClusterNetwork: []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}}, ServiceNetwork: []string{"172.30.0.0/16"},
				ExternalIP: &configv1.ExternalIPConfig{Policy: &configv1.ExternalIPPolicy{}}},
			Status: configv1.NetworkStatus{ClusterNetwork: []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}}, ServiceNetwork: []string{"172.30.0.0/16"}}},
		&configv1.APIServer{ObjectMeta: named("", "cluster"), Spec: configv1.APIServerSpec{Encryption: configv1.APIServerEncryption{Type: configv1.EncryptionTypeAESCBC}}},
		&configv1.Authentication{ObjectMeta: named("", "cluster")}, &configv1.OAuth{ObjectMeta: named("", "cluster")},
		&configv1.Image{ObjectMeta: named("", "cluster"), Status: configv1.ImageStatus{InternalRegistryHostname: "image-registry.openshift-image-registry.svc:5000"}},
		&configv1.Scheduler{ObjectMeta: named("", "cluster"), Spec: configv1.SchedulerSpec{MastersSchedulable: true}},
		&configv1.FeatureGate{ObjectMeta: named("", "cluster"), Status: configv1.FeatureGateStatus{FeatureGates: []configv1.FeatureGateDetails{{Version: "4.21.3",
			Enabled: []configv1.FeatureGateAttributes{{Name: "A"}}, Disabled: []configv1.FeatureGateAttributes{{Name: "B"}}}}}},
		&configv1.Proxy{ObjectMeta: named("", "cluster")}, &configv1.Ingress{ObjectMeta: named("", "cluster"), Spec: configv1.IngressSpec{Domain: "apps.sno.example.com"}},
		&configv1.DNS{ObjectMeta: named("", "cluster"), Spec: configv1.DNSSpec{BaseDomain: "sno.example.com"}}, &configv1.Node{ObjectMeta: named("", "cluster")},
		&operatorv1.KubeAPIServer{ObjectMeta: named("", "cluster"),
			Spec: operatorv1.KubeAPIServerSpec{StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{OperatorSpec: operatorv1.OperatorSpec{
				ManagementState: operatorv1.Managed, ObservedConfig: runtime.RawExtension{Raw: []byte(`{"empty":"","none":{},"apiServerArguments":{"etcd-servers":["https://192.168.126.10:2379"]}}`)}}}},
			Status: operatorv1.KubeAPIServerStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
				OperatorStatus: operatorv1.OperatorStatus{LatestAvailableRevision: 1}, NodeStatuses: []operatorv1.NodeStatus{{NodeName: "master-0", CurrentRevision: 1}}}}},
		&operatorv1.Etcd{ObjectMeta: named("", "cluster"), Spec: operatorv1.EtcdSpec{StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{
			OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}}}},
		&operatorv1.KubeControllerManager{ObjectMeta: named("", "cluster"), Spec: operatorv1.KubeControllerManagerSpec{StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{
			OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}}}},
		&operatorv1.KubeScheduler{ObjectMeta: named("", "cluster"), Spec: operatorv1.KubeSchedulerSpec{StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{
			OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}}}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata": map[string]any{"name": "other", "namespace": target, "uid": "5"}, "data": map[string]any{"x": "eQ=="}}},
	}
}

func manifests(t *testing.T, objects []runtime.Object) []Manifest {
	t.Helper()
	found, err := Manifests(objects)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// R-REN-7.
func TestManifests(t *testing.T) {
	t.Parallel()
	all := manifests(t, small())
	var names, statuses []string
	contents := map[string]string{}
	for _, manifest := range all {
		names = append(names, manifest.Name)
		contents[manifest.Name] = string(manifest.Content)
		for _, request := range manifest.StatusRequests() {
			statuses = append(statuses, request.GetKind())
		}
	}
	want := []string{
		"0001_namespace_openshift-kube-apiserver.yaml",
		"0002_openshift-kube-apiserver_serviceaccount_localhost-recovery-client.yaml",
		"0003_openshift-kube-apiserver_role_a.yaml",
		"0004_clusterrolebinding_system-openshift-controller-x.yaml",
		"0005_openshift-kube-apiserver_rolebinding_b.yaml",
		"0006_kube-system_configmap_cluster-config-v1.yaml",
		"0007_openshift-kube-apiserver_configmap_revision-status-1.yaml",
		"0008_openshift-kube-apiserver_secret_encryption-config-1.yaml",
		"0009_openshift-kube-apiserver_secret_other.yaml",
		"0010_openshift-kube-apiserver_service_apiserver.yaml",
		"0011_apiserver_cluster.yaml", "0012_authentication_cluster.yaml", "0013_dns_cluster.yaml", "0014_featuregate_cluster.yaml",
		"0015_image_cluster.yaml", "0016_infrastructure_cluster.yaml", "0017_ingress_cluster.yaml", "0018_network_cluster.yaml",
		"0019_node_cluster.yaml", "0020_oauth_cluster.yaml", "0021_proxy_cluster.yaml", "0022_scheduler_cluster.yaml",
		"0023_etcd_cluster.yaml", "0024_kubeapiserver_cluster.yaml", "0025_kubecontrollermanager_cluster.yaml", "0026_kubescheduler_cluster.yaml",
		"0027_priorityclass_openshift-user-critical.yaml",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	wantStatuses := []string{"FeatureGate", "Image", "Infrastructure", "KubeAPIServer", "KubeAPIServer"}
	if diff := cmp.Diff(wantStatuses, statuses); diff != "" {
		t.Errorf("requests to statuses (-want +got):\n%s", diff)
	}
	wantContent := `apiVersion: v1
data:
  config.yaml: "a: b\n\n  c\t: \"yes\"\n"
  revision: "1"
kind: ConfigMap
metadata:
  annotations:
    operator.openshift.io/revision-ready: "true"
  name: revision-status-1
  namespace: openshift-kube-apiserver
`
	if diff := cmp.Diff(wantContent, contents[want[6]]); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	// A pointer to an empty struct was set, an empty struct was not.
	wantNetwork := "externalIP:\n    policy: {}\n"
	if content := contents[want[17]]; !strings.Contains(content, wantNetwork) || strings.Contains(content, "networkDiagnostics") || strings.Contains(content, "networkType") {
		t.Errorf("the network:\n%s", content)
	}
	if diff := cmp.Diff("apiVersion: config.openshift.io/v1\nkind: Node\nmetadata:\n  name: cluster\nspec: {}\n", contents[want[18]]); diff != "" {
		t.Errorf("an empty resource (-want +got):\n%s", diff)
	}
	for _, file := range Files(all) {
		if file.Mode != 0o600 {
			t.Errorf("%s has mode %s", file.Path, file.Mode)
		}
	}
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	objects := small()
	want := manifests(t, objects)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		if diff := cmp.Diff(want, manifests(t, objects)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(small(), objects, cmpopts.SortSlices(func(a, b runtime.Object) bool { return fmt.Sprint(a) < fmt.Sprint(b) })); diff != "" {
		t.Errorf("the objects were changed (-before +after):\n%s", diff)
	}
}

func TestManifestsRefuses(t *testing.T) {
	t.Parallel()
	untyped := func(content map[string]any) runtime.Object { return &unstructured.Unstructured{Object: content} }
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    error
		text    string
	}{
		"no namespace": {[]runtime.Object{&corev1.Secret{ObjectMeta: named("openshift-etcd", "a")}}, ErrNoNamespace, "Secret openshift-etcd/a"},
		"no kind":      {[]runtime.Object{untyped(map[string]any{"metadata": map[string]any{"name": "a"}})}, ErrUnknownKind, "export"},
		"unknown type": {[]runtime.Object{&configv1alpha1.InsightsDataGather{}}, ErrUnknownKind, "*v1alpha1.InsightsDataGather"},
		"no name":      {[]runtime.Object{&corev1.Namespace{}}, ErrNoName, "Namespace"},
		"twice": {[]runtime.Object{&corev1.Namespace{ObjectMeta: named("", "a")},
			untyped(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "a"}})}, ErrDuplicate, "Namespace a"},
	} {
		found, err := Manifests(test.objects)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || found != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Manifests([]runtime.Object{&corev1.Secret{ObjectMeta: named("x", "a")}, &corev1.Secret{ObjectMeta: named("y", "b")}})
	if err == nil || !strings.Contains(err.Error(), "x/a") || !strings.Contains(err.Error(), "y/b") {
		t.Errorf("not all at once: %v", err)
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	all := manifests(t, []runtime.Object{
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "namespace": "b"}}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", "things.example.com")},
		&rbacv1.ClusterRole{ObjectMeta: named("", "a")}, &corev1.ServiceAccount{ObjectMeta: named("b", "a")}, &corev1.Namespace{ObjectMeta: named("", "b")},
	})
	var kinds []string
	for _, manifest := range all {
		kinds = append(kinds, manifest.Object.GetKind())
	}
	want := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Deployment"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Manifests of objects that were read from manifests are equal (R-REN-7).
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	all := manifests(t, small())
	dir := t.TempDir()
	if err := files.Write(dir, Files(all)); err != nil {
		t.Fatal(err)
	}
	objects, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	var want []runtime.Object
	for _, manifest := range all {
		want = append(want, manifest.Object)
	}
	if diff := cmp.Diff(want, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, manifests(t, objects)); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]fstest.MapFS{
		"another file":     {"a.txt": {}},
		"a folder":         {"a/b.yaml": {}},
		"no object":        {"a.yaml": {Data: []byte("a: b")}},
		"a field twice":    {"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nkind: Secret\n")}},
		"no YAML":          {"a.yaml": {Data: []byte("{")}},
		"nothing in there": {"a.yaml": {}},
	} {
		if _, err := Read(folder); !errors.Is(err, ErrNotManifest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, text := range []string{"", "yes", "0x1F", "1e3", "~", "a\r\nb", " \tx ", "---\na", "\u2028\x85\ufeff", "- &a\n*a", "'\"", "2001-01-01", "\x00\x7f"} {
		f.Add(text, []byte(text))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		if strings.ToValidUTF8(text, "") != text {
			t.Skip() // not valid in JSON
		}
		want := &corev1.ConfigMap{ObjectMeta: named("default", "a"), Data: map[string]string{"x": text, text: "y"}, BinaryData: map[string][]byte{"z": data}}
		all := manifests(t, []runtime.Object{want})
		objects, err := Read(fstest.MapFS{all[0].Name: {Data: all[0].Content}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[0].Object, objects[0]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
