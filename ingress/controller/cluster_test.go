package controller_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/patchtest"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{
	patchtest.Infrastructures, patchtest.Ingresses, patchtest.IngressControllers,
}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("ingress-controller", args, &controller.Module{}) })
	os.Exit(shared.Main(m))
}

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	// stock is the manager as which the ingress operator writes.
	stock = "cluster-ingress-operator"

	account         = "ingress-controller"
	systemNamespace = "sno-system"
	leaseName       = "ingress-controller.sno.solonode.github.io"
)

var placement = &operatorv1.NodePlacement{
	NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/master": ""}},
	Tolerations: []corev1.Toleration{
		{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	},
}

// cluster is what a stock cluster looks like to the controller, without a stock operator: the test plays that.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
}

// newCluster has the namespaces and the controller's permissions, and no objects.
func newCluster(t *testing.T, server *patchtest.APIServer) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{ingress.IngressControllerNamespace, ingress.RouterNamespace, systemNamespace} {
		err := c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	c.permit(account)
	t.Cleanup(c.clear)
	return c
}

// sharedCluster is newCluster on the API server that the tests share, with the objects of an installed cluster.
func sharedCluster(t *testing.T, controlPlane, infrastructure configv1.TopologyMode) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(controlPlane, infrastructure)
	return c
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", "", ""),
		object("config.openshift.io/v1", "Ingress", "", ""),
		object("operator.openshift.io/v1", "IngressController", ingress.IngressControllerNamespace, ""),
		object("apps/v1", "Deployment", ingress.RouterNamespace, ""),
		object("coordination.k8s.io/v1", "Lease", systemNamespace, ""),
		object("events.k8s.io/v1", "Event", ingress.IngressControllerNamespace, ""),
	} {
		err := c.admin.DeleteAllOf(ctx, u, client.InNamespace(u.GetNamespace()), client.GracePeriodSeconds(0))
		if err != nil && !apierrors.IsNotFound(err) {
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

// permit gives a service account exactly what config/rbac gives the controller's.
func (c *cluster) permit(account string) {
	c.Helper()
	for _, u := range patchtest.Manifests(c, "../config", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml") {
		switch u.GetKind() {
		case "ServiceAccount":
			u.SetName(account)
		case "RoleBinding", "ClusterRoleBinding":
			subjects, _, err := unstructured.NestedSlice(u.Object, "subjects")
			if err != nil || len(subjects) != 1 {
				c.Fatalf("%s %s: one subject expected: %v, %v", u.GetKind(), u.GetName(), subjects, err)
			}
			subjects[0].(map[string]any)["name"] = account
			if err := unstructured.SetNestedSlice(u.Object, subjects, "subjects"); err != nil {
				c.Fatal(err)
			}
			u.SetName(account)
		}
		c.server.Put(c, u)
	}
}

// user is how the audit log calls a service account.
func user(account string) string { return "system:serviceaccount:" + systemNamespace + ":" + account }

// eventually waits until check is content, and fails the test with its last complaint.
func (c *cluster) eventually(what string, check func() error) {
	c.Helper()
	patchtest.Eventually(c, what, check)
}

func (c *cluster) installInfrastructure(controlPlane, infrastructure configv1.TopologyMode) {
	c.Helper()
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: ingress.ConfigName}}
	if err := c.admin.Create(c.Context(), i); err != nil {
		c.Fatal(err)
	}
	c.flip(controlPlane, infrastructure)
}

// flip changes the topology at run time.
func (c *cluster) flip(controlPlane, infrastructure configv1.TopologyMode) {
	c.Helper()
	c.patch(object("config.openshift.io/v1", "Infrastructure", "", ingress.ConfigName), "installer", fmt.Sprintf(
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`,
		controlPlane, infrastructure), "status")
}

func (c *cluster) setDefaultPlacement(def configv1.DefaultPlacement) {
	c.Helper()
	u := object("config.openshift.io/v1", "Ingress", "", ingress.ConfigName)
	u.Object["spec"] = map[string]any{}
	if err := c.admin.Create(c.Context(), u.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		c.Fatal(err)
	}
	delete(u.Object, "spec")
	c.patch(u, "installer", fmt.Sprintf(`{"status":{"defaultPlacement":%q}}`, def), "status")
}

// patch writes as `oc patch --type=merge` would, as the field manager.
func (c *cluster) patch(u *unstructured.Unstructured, fieldManager, text string, subresource ...string) {
	c.Helper()
	raw := client.RawPatch(types.MergePatchType, []byte(text))
	var err error
	if len(subresource) > 0 {
		err = c.admin.Status().Patch(c.Context(), u, raw, client.FieldOwner(fieldManager))
	} else {
		err = c.admin.Patch(c.Context(), u, raw, client.FieldOwner(fieldManager))
	}
	if err != nil {
		c.Fatalf("%s writing %s: %v", fieldManager, text, err)
	}
}

func defaultController() *unstructured.Unstructured {
	return object("operator.openshift.io/v1", "IngressController", ingress.IngressControllerNamespace, ingress.IngressControllerName)
}

// installController makes the default IngressController as the stock operator does.
func (c *cluster) installController(replicas int32) {
	c.Helper()
	c.createController(ingress.IngressControllerName, stock, operatorv1.IngressControllerSpec{Replicas: ptr.To(replicas)})
}

func (c *cluster) createController(name, fieldManager string, spec operatorv1.IngressControllerSpec) {
	c.Helper()
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: name}, Spec: spec}
	if err := c.admin.Create(c.Context(), ic, client.FieldOwner(fieldManager)); err != nil {
		c.Fatal(err)
	}
}

// edit writes the default IngressController as somebody would with `oc patch`.
func (c *cluster) edit(fieldManager, text string) {
	c.Helper()
	c.patch(defaultController(), fieldManager, text)
}

// controller reads the default IngressController.
func (c *cluster) controller() *operatorv1.IngressController {
	c.Helper()
	ic, err := c.tryController()
	if err != nil {
		c.Fatal(err)
	}
	return ic
}

func (c *cluster) tryController() (*operatorv1.IngressController, error) {
	ic := &operatorv1.IngressController{}
	err := c.admin.Get(c.Context(), client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName}, ic)
	return ic, err
}

// pinned says whether the default IngressController is pinned, with the given number of replicas (nil for unset).
func (c *cluster) pinned(replicas *int32) func() error {
	return c.spec(placement, replicas)
}

// released says whether nothing of ours is left.
func (c *cluster) released(replicas *int32) func() error {
	return func() error {
		if err := c.spec(nil, replicas)(); err != nil {
			return err
		}
		if err := c.scale(replicas)(); err != nil {
			return err
		}
		return c.ownsNothing()
	}
}

// scale says whether an autoscaler reads that number; nil for none, as on an IngressController that was made without one.
func (c *cluster) scale(want *int32) func() error {
	return func() error {
		scale := &autoscalingv1.Scale{}
		ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName}}
		err := c.admin.SubResource("scale").Get(c.Context(), ic, scale)
		switch {
		case want == nil && err == nil:
			return fmt.Errorf("/scale has %d replicas, want none", scale.Spec.Replicas)
		case want != nil && err != nil:
			return fmt.Errorf("reading /scale: %w", err)
		case want != nil && scale.Spec.Replicas != *want:
			return fmt.Errorf("/scale has %d replicas, want %d", scale.Spec.Replicas, *want)
		}
		return nil
	}
}

func (c *cluster) ownsNothing() error {
	ic, err := c.tryController()
	if err != nil {
		return err
	}
	own, err := ownership.Applied(ic, ingress.FieldOwner, "")
	if err != nil {
		return err
	}
	if !own.Empty() {
		return fmt.Errorf("the module still owns %s", own)
	}
	if len(ic.Annotations) > 0 {
		for name := range ic.Annotations {
			if strings.HasSuffix(name, "-replaced") {
				return fmt.Errorf("annotation %s is still there", name)
			}
		}
	}
	return nil
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func (c *cluster) spec(want *operatorv1.NodePlacement, replicas *int32) func() error {
	return func() error {
		ic, err := c.tryController()
		switch {
		case err != nil:
			return err
		case !equal(ic.Spec.NodePlacement, want):
			return fmt.Errorf("nodePlacement is %+v, want %+v", ic.Spec.NodePlacement, want)
		case (ic.Spec.Replicas == nil) != (replicas == nil) || (replicas != nil && *ic.Spec.Replicas != *replicas):
			return fmt.Errorf("replicas are %v, want %v", number(ic.Spec.Replicas), number(replicas))
		}
		return nil
	}
}

func number(n *int32) any {
	if n == nil {
		return "unset"
	}
	return *n
}

// rollOut plays the stock operator: it makes the router Deployment what the IngressController asks for, and finishes it.
func (c *cluster) rollOut() {
	c.Helper()
	ic := c.controller()
	labels := map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
	pod := corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "router", Image: "router"}},
		NodeSelector: map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"},
	}
	if p := ic.Spec.NodePlacement; p != nil {
		pod.NodeSelector, pod.Tolerations = maps.Clone(p.NodeSelector.MatchLabels), slices.Clone(p.Tolerations)
	}
	router := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.RouterNamespace, Name: ingress.RouterName}}
	err := c.admin.Get(c.Context(), client.ObjectKeyFromObject(router), router)
	if err != nil && !apierrors.IsNotFound(err) {
		c.Fatal(err)
	}
	router.Spec.Replicas = ptr.To(ptr.Deref(ic.Spec.Replicas, 2))
	router.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	router.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}
	if router.UID == "" {
		err = c.admin.Create(c.Context(), router)
	} else {
		err = c.admin.Update(c.Context(), router)
	}
	if err != nil {
		c.Fatal(err)
	}
	n := *router.Spec.Replicas
	router.Status = appsv1.DeploymentStatus{ObservedGeneration: router.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := c.admin.Status().Update(c.Context(), router); err != nil {
		c.Fatal(err)
	}
}

// condition reads one of our sub-conditions.
func (c *cluster) condition(conditionType string) (operatorv1.OperatorCondition, error) {
	ic, err := c.tryController()
	if err != nil {
		return operatorv1.OperatorCondition{}, err
	}
	for _, condition := range ic.Status.Conditions {
		if condition.Type == conditionType {
			return condition, nil
		}
	}
	return operatorv1.OperatorCondition{}, fmt.Errorf("there is no condition %s", conditionType)
}

// shows says whether the sub-conditions tell of the reason, and whether the patch is in force.
func (c *cluster) shows(status operatorv1.ConditionStatus, reason string) func() error {
	return func() error {
		got, err := c.condition("IngressTopologyPatchInForce")
		if err != nil {
			return err
		}
		if got.Status != status || got.Reason != reason {
			return fmt.Errorf("IngressTopologyPatchInForce is %s (%s): %s; want %s (%s)", got.Status, got.Reason, got.Message, status, reason)
		}
		return nil
	}
}

// events counts the controller's events by their reasons.
func (c *cluster) events() map[string]int {
	c.Helper()
	list := &eventsv1.EventList{}
	if err := c.admin.List(c.Context(), list, client.InNamespace(ingress.IngressControllerNamespace)); err != nil {
		c.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range list.Items {
		if e.ReportingController != "sno-ingress" || e.Regarding.Kind != "IngressController" || e.Regarding.Name != "default" {
			c.Errorf("an event of somebody else, or about something else: %+v", e)
			continue
		}
		counts[e.Type+" "+e.Reason]++
		if e.Series != nil {
			counts[e.Type+" "+e.Reason] += int(e.Series.Count) - 1
		}
	}
	return counts
}

func (c *cluster) lease() (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.admin.Get(c.Context(), client.ObjectKey{Namespace: systemNamespace, Name: leaseName}, lease)
	return lease, err
}

// writes splits the account's write requests into those on the IngressController's spec, on its status, and all others but
// the Lease.
type writes struct{ spec, status, events, others []patchtest.Write }

func sorted(all []patchtest.Write) writes {
	var w writes
	for _, write := range all {
		path, _, _ := strings.Cut(write.URI, "?")
		switch {
		case strings.HasSuffix(path, "/ingresscontrollers/default"):
			w.spec = append(w.spec, write)
		case strings.HasSuffix(path, "/ingresscontrollers/default/status"):
			w.status = append(w.status, write)
		case strings.Contains(path, "/events"):
			w.events = append(w.events, write)
		case strings.Contains(path, "/leases"):
		default:
			w.others = append(w.others, write)
		}
	}
	return w
}

func (c *cluster) writes(account string, during func()) writes {
	c.Helper()
	return sorted(c.server.WritesDuring(c, user(account), during))
}

// narrow replaces the controller's permissions on the IngressController.
func (c *cluster) narrow(rules ...rbacv1.PolicyRule) {
	c.Helper()
	role := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: account}
	if err := c.admin.Get(c.Context(), key, role); err != nil {
		c.Fatal(err)
	}
	role.Rules = rules
	if err := c.admin.Update(c.Context(), role); err != nil {
		c.Fatal(err)
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
