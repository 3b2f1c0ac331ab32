package etcdguard_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

// The five modes, and what else a field can say.
const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

// needsGuard is the rule, by hand and not by the code.
func needsGuard(mode configv1.TopologyMode) bool { return mode != sr && mode != external }

// expected is how many members a topology is installed with.
func expected(mode configv1.TopologyMode) int {
	return map[configv1.TopologyMode]int{sr: 1, dual: 2, external: 0, ha: 3, arbiter: 3, empty: 3, unknown: 3}[mode]
}

// mayGo is how many of n members may be drained at once: what quorum tolerates, and one of two that fence each other.
func mayGo(mode configv1.TopologyMode, n int) int {
	if mode == dual && n == 2 {
		return 1
	}
	return (n - 1) / 2
}

func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(ha), Platform: configv1.NonePlatformType}
}

const cvo, stock, person, us = "cluster-version-operator", "cluster-etcd-operator", "oc", "sno.solonode.github.io/etcdguard"

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == us {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

const (
	replicasJSON       = `{"f:spec":{"f:replicas":{}}}`
	maxUnavailableJSON = `{"f:spec":{"f:maxUnavailable":{}}}`
	staticGuardJSON    = `{"f:metadata":{"f:annotations":{}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:nodeSelector":{},"f:containers":{"k:{\"name\":\"guard\"}":{".":{},"f:image":{}}}}}}}`
)

// master and arbiterNode are nodes with a role.
func master(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
}

func arbiterNode(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/arbiter": ""}}}
}

func worker(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
}

// nodesOf are n nodes with a member, and a worker. With an arbiter one of the n is it.
func nodesOf(mode configv1.TopologyMode, n int) []corev1.Node {
	nodes := []corev1.Node{worker("w")}
	for i := range n {
		if i == 0 && mode == arbiter {
			nodes = append(nodes, arbiterNode("a"))
			continue
		}
		nodes = append(nodes, master(fmt.Sprintf("m%d", i)))
	}
	return nodes
}

// membersOf are n members, of which the last are not healthy.
func membersOf(n, healthy int) []etcdguard.Member {
	members := []etcdguard.Member{}
	for i := range n {
		members = append(members, etcdguard.Member{ID: uint64(i + 1), Healthy: i < healthy})
	}
	return members
}

// staticGuard is the Deployment as the release has it: three replicas on nodes with the master role.
func staticGuard(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-etcd", Name: "etcd-quorum-guard", UID: "d",
		Annotations:   map[string]string{"include.release.openshift.io/self-managed-high-availability": "true", "kept": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{entry(cvo, staticGuardJSON)},
	}}
	d.Spec.Replicas = ptr.To[int32](3)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "etcd-quorum-guard"}}
	d.Spec.Template.Labels = map[string]string{"k8s-app": "etcd-quorum-guard"}
	d.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Containers: []corev1.Container{{Name: "guard", Image: "cli", ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}}},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func staticBudget(change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-etcd", Name: "etcd-quorum-guard", UID: "b",
		Annotations:   map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
		ManagedFields: []metav1.ManagedFieldsEntry{entry(cvo, maxUnavailableJSON)},
	}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "etcd-quorum-guard"}}
	for _, f := range change {
		f(b)
	}
	return b
}

// no is the answer where there is no error.
func no[T any](answer T, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}

// hostOf is what an operator on a cluster with that many members knows; 0 for as many as the topology expects.
func hostOf(mode configv1.TopologyMode, n int) etcdguard.Host {
	return no(etcdguard.NewHost(clusterOf(mode), max(n, 1), "cli"))
}

// ourGuard is what the API server has after the intent was applied for n members, and ourBudget the same.
func ourGuard(t testing.TB, mode configv1.TopologyMode, n int, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	d := no(etcdguard.Deployment(hostOf(mode, n)))
	d.UID = "d"
	d.ManagedFields = []metav1.ManagedFieldsEntry{entry(us, fieldsV1(t, d))}
	for _, f := range change {
		f(d)
	}
	return d
}

func ourBudget(t testing.TB, mode configv1.TopologyMode, n int, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	t.Helper()
	b := no(etcdguard.DisruptionBudget(hostOf(mode, n)))
	b.UID = "b"
	b.ManagedFields = []metav1.ManagedFieldsEntry{entry(us, fieldsV1(t, b))}
	for _, f := range change {
		f(b)
	}
	return b
}

// fieldsV1 is what the API server writes into the managedFields of whoever applied all of the object. Which lists are maps
// stands in the API's own schema; the apply test on a real API server keeps this honest.
func fieldsV1(t testing.TB, object any) string {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text(t, object)), &value); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(value, key)
	}
	metadata, _ := value["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "uid", "creationTimestamp", "managedFields"} {
		delete(metadata, key)
	}
	if len(metadata) == 0 {
		delete(value, "metadata")
	}
	return text(t, owned("", value))
}

var (
	listKeys   = map[string]string{"containers": "name", "volumes": "name", "volumeMounts": "mountPath"}
	atomicMaps = []string{"nodeSelector", "matchLabels", "selector", "labelSelector"}
)

func owned(name string, value any) map[string]any {
	fields := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		if slices.Contains(atomicMaps, name) {
			return fields
		}
		for key, member := range value {
			if member != nil {
				fields["f:"+key] = owned(key, member)
			}
		}
	case []any:
		key, isMap := listKeys[name]
		for _, item := range value {
			if element, ok := item.(map[string]any); ok && isMap {
				inside := owned("", element)
				inside["."] = map[string]any{}
				fields[fmt.Sprintf(`k:{"%s":"%s"}`, key, element[key])] = inside
			}
		}
	}
	return fields
}

// version is the ClusterVersion with these overrides, seen by the cluster-version-operator.
func version(overrides ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", UID: "cv", Generation: 3}}
	cv.Spec.Overrides = append([]configv1.ComponentOverride{otherEntry()}, overrides...)
	cv.Status.ObservedGeneration = 3
	cv.ManagedFields = []metav1.ManagedFieldsEntry{entry("cluster-bootstrap", `{"f:spec":{"f:clusterID":{},"f:overrides":{`+
		`"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"dns-operator\",\"namespace\":\"openshift-dns-operator\"}":{".":{}}}}}`)}
	return cv
}

func otherEntry() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}
}

func guardEntry(kind string, unmanaged bool) configv1.ComponentOverride {
	group := map[string]string{"Deployment": "apps", "PodDisruptionBudget": "policy"}[kind]
	return configv1.ComponentOverride{Kind: kind, Group: group, Namespace: "openshift-etcd", Name: "etcd-quorum-guard", Unmanaged: unmanaged}
}

func bothEntries(unmanaged bool) []configv1.ComponentOverride {
	return []configv1.ComponentOverride{guardEntry("Deployment", unmanaged), guardEntry("PodDisruptionBudget", unmanaged)}
}

// entriesJSON is what somebody owns who wrote the entries of these kinds.
func entriesJSON(kinds ...string) string {
	var elements []string
	for _, kind := range kinds {
		e := guardEntry(kind, true)
		elements = append(elements, fmt.Sprintf(`"k:{\"group\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"namespace\":\"%s\"}":{".":{},"f:unmanaged":{}}`, e.Group, e.Kind, e.Name, e.Namespace))
	}
	return `{"f:spec":{"f:overrides":{` + strings.Join(elements, ",") + `}}}`
}

func signed(cv *configv1.ClusterVersion, manager, fields string) *configv1.ClusterVersion {
	cv.ManagedFields = append(cv.ManagedFields, entry(manager, fields))
	return cv
}

func unobserved(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	cv.Generation++
	return cv
}

// claimed is the ClusterVersion with our entries, seen.
func claimed() *configv1.ClusterVersion {
	return signed(version(bothEntries(true)...), us, entriesJSON("Deployment", "PodDisruptionBudget"))
}

// of are the inputs of a cluster with that many nodes and healthy members, and the static guard.
func of(mode configv1.TopologyMode, n int, change ...func(*etcdguard.Inputs)) etcdguard.Inputs {
	cluster := clusterOf(mode)
	in := etcdguard.Inputs{
		Cluster: &cluster, Nodes: nodesOf(mode, n), Members: membersOf(n, n), ClusterVersion: version(),
		Deployment: staticGuard(), Budget: staticBudget(),
		ClientSecret: etcdguard.Present, CABundle: etcdguard.Present,
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

// text is the canonical text of anything, so that "the same bytes" can be said.
func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
