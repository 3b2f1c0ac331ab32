package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/patchtest"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	account         = "console-controller"
	systemNamespace = "sno-system"
	// us is how the audit log calls the controller.
	us = "system:serviceaccount:" + systemNamespace + ":" + account

	// patience bounds every wait. It is far longer than anything takes.
	patience = 60 * time.Second
	glance   = 50 * time.Millisecond
)

// cluster is what a cluster looks like to the controller. Nothing acts in it: the tests play the operators.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	// force gives walkers --force-conflicts.
	force bool
}

// newCluster has the namespaces and the controller's permissions, and no objects.
func newCluster(t *testing.T, server *patchtest.APIServer) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{console.Namespace, systemNamespace} {
		err := c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, u := range patchtest.Manifests(t, "../config", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml") {
		c.server.Put(c, u)
	}
	t.Cleanup(c.clear)
	return c
}

// installed is a cluster of which the installer and the cluster-version-operator are done: two replicas of everything, whatever
// the topology.
func installed(t *testing.T, controlPlane, infrastructure configv1.TopologyMode, overrides ...configv1.ComponentOverride) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(controlPlane, infrastructure)
	c.installOperator("")
	c.installVersion(overrides...)
	c.installConsole()
	(&versionOperator{cluster: c}).act()
	return c
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", "", ""),
		object("config.openshift.io/v1", "ClusterVersion", "", ""),
		object("operator.openshift.io/v1", "Console", "", ""),
		object("apps/v1", "Deployment", console.Namespace, ""),
		object("policy/v1", "PodDisruptionBudget", console.Namespace, ""),
		object("coordination.k8s.io/v1", "Lease", systemNamespace, ""),
		object("events.k8s.io/v1", "Event", "default", ""),
	} {
		err := c.admin.DeleteAllOf(ctx, u, client.InNamespace(u.GetNamespace()), client.GracePeriodSeconds(0))
		if err != nil && !apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "no matches for kind") {
			c.Errorf("cleaning up %s: %v", u.GetKind(), err)
		}
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// eventually waits until check is content, and fails the test with its last complaint.
func (c *cluster) eventually(what string, check func() error) {
	c.Helper()
	patchtest.Eventually(c, what, check)
}

func (c *cluster) installInfrastructure(controlPlane, infrastructure configv1.TopologyMode) {
	c.Helper()
	if err := c.admin.Create(c.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}); err != nil {
		c.Fatal(err)
	}
	c.flip(controlPlane, infrastructure)
}

// flip changes the topology at run time.
func (c *cluster) flip(controlPlane, infrastructure configv1.TopologyMode) {
	c.Helper()
	c.patchStatus(object("config.openshift.io/v1", "Infrastructure", "", "cluster"), "installer", fmt.Sprintf(
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`,
		controlPlane, infrastructure))
}

// installOperator makes the console operator's own resource.
func (c *cluster) installOperator(state operatorv1.ManagementState) {
	c.Helper()
	u := object("operator.openshift.io/v1", "Console", "", console.OperatorName)
	u.Object["spec"] = map[string]any{}
	if state != "" {
		u.Object["spec"] = map[string]any{"managementState": string(state)}
	}
	if err := c.admin.Create(c.Context(), u); err != nil {
		c.Fatal(err)
	}
}

// manage sets managementState as `oc patch` would.
func (c *cluster) manage(state operatorv1.ManagementState) {
	c.Helper()
	c.patch(object("operator.openshift.io/v1", "Console", "", console.OperatorName), "oc", fmt.Sprintf(`{"spec":{"managementState":%q}}`, state))
}

func (c *cluster) operator() *operatorv1.Console {
	c.Helper()
	return get(c, &operatorv1.Console{}, client.ObjectKey{Name: console.OperatorName})
}

// installVersion makes the ClusterVersion as the bootstrap does, with a person's overrides.
func (c *cluster) installVersion(overrides ...configv1.ComponentOverride) {
	c.Helper()
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: console.ClusterVersionName}}
	v.Spec.ClusterID = "11111111-2222-4333-8444-555555555555"
	v.Spec.Channel = "stable"
	if err := c.admin.Create(c.Context(), v, client.FieldOwner("cluster-bootstrap")); err != nil {
		c.Fatal(err)
	}
	if len(overrides) > 0 {
		v.Spec.Overrides = overrides
		if err := c.admin.Update(c.Context(), v, client.FieldOwner("oc")); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *cluster) clusterVersion() *configv1.ClusterVersion {
	c.Helper()
	return get(c, &configv1.ClusterVersion{}, client.ObjectKey{Name: console.ClusterVersionName})
}

// deployment reads one of the two.
func (c *cluster) deployment(name string) *appsv1.Deployment {
	c.Helper()
	return get(c, &appsv1.Deployment{}, client.ObjectKey{Namespace: console.Namespace, Name: name})
}

// get reads an object that must be there.
func get[T client.Object](c *cluster, into T, key client.ObjectKey) T {
	c.Helper()
	if err := c.admin.Get(c.Context(), key, into); err != nil {
		c.Fatal(err)
	}
	return into
}

// install makes a Deployment in the name of a field manager.
func (c *cluster) install(fieldManager string, d *appsv1.Deployment) {
	c.Helper()
	if err := c.admin.Create(c.Context(), d, client.FieldOwner(fieldManager)); err != nil {
		c.Fatal(err)
	}
}

// installConsole makes a console Deployment of which nobody has an opinion about the shape.
func (c *cluster) installConsole() {
	c.Helper()
	c.applyAs("installer", unshaped(console.ConsoleName))
}

// unshaped is a Deployment that says nothing about its shape.
func unshaped(name string) *unstructured.Unstructured {
	labels := map[string]any{"app": "console", "component": manifest(name).Labels["component"]}
	u := object("apps/v1", "Deployment", console.Namespace, name)
	u.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "server", "image": "server"}}},
		},
	}
	return u
}

// applyAs is server-side apply, which makes nobody the owner of defaults.
func (c *cluster) applyAs(fieldManager string, u *unstructured.Unstructured) {
	c.Helper()
	if err := c.admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager)); err != nil {
		c.Fatal(err)
	}
}

// patch writes as `oc patch --type=merge` would, as the field manager.
func (c *cluster) patch(u *unstructured.Unstructured, fieldManager, text string) {
	c.Helper()
	if err := c.admin.Patch(c.Context(), u, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner(fieldManager)); err != nil {
		c.Fatalf("%s writing %s: %v", fieldManager, text, err)
	}
}

func (c *cluster) patchStatus(u *unstructured.Unstructured, fieldManager, text string) {
	c.Helper()
	if err := c.admin.Status().Patch(c.Context(), u, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner(fieldManager)); err != nil {
		c.Fatalf("%s writing %s: %v", fieldManager, text, err)
	}
}

// manifest is a Deployment as a release that knows no topology brings it: two replicas that must not share a node.
func manifest(name string) *appsv1.Deployment {
	component := map[string]string{console.ConsoleName: "ui", console.DownloadsName: "downloads"}[name]
	labels := map[string]string{"app": "console", "component": component}
	quarter := intstr.FromString("25%")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: name, Labels: labels}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &quarter, MaxSurge: &quarter}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "server", Image: "server"}},
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Tolerations: []corev1.Toleration{
				{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)},
			},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: "kubernetes.io/hostname",
			}}}},
		}},
	}
	return d
}
