// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"errors"
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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	standalone "github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

var suite = modules.Suite{
	Module:       func() controller.Module { return &standalone.Module{} },
	Options:      apiserver.Options{CRDs: []string{crds.Infrastructures, crds.Ingresses, crds.IngressControllers}},
	ExtraObjects: []controller.Object{modules.Object("events.k8s.io/v1", "Event", ingress.IngressControllerNamespace, "")},
}

var (
	controllerObject = modules.Object("operator.openshift.io/v1", "IngressController", ingress.IngressControllerNamespace, "default")
	ingressObject    = modules.Object("config.openshift.io/v1", "Ingress", "", ingress.ConfigName)
	routerObject     = modules.Object("apps/v1", "Deployment", ingress.RouterNamespace, ingress.RouterName)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	stock = "cluster-ingress-operator" // the field manager

	optOut = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"ingress"}}}`
	optIn  = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`
)

var (
	one   = ptr.To[int32](1)
	two   = ptr.To[int32](2)
	three = ptr.To[int32](3)

	placement = &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/master": ""}},
		Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/master", Operator: "Exists", Effect: "NoSchedule"},
			{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists", Effect: "NoSchedule"},
		},
	}
)

// cluster has no ingress operator; the test writes in its place.
type cluster struct{ *modules.Cluster }

func newCluster(t *testing.T, controlPlane, infrastructure configv1.TopologyMode) *cluster {
	t.Helper()
	c := &cluster{suite.Cluster(t)}
	c.SetTopology(controlPlane, infrastructure)
	return c
}

func (c *cluster) setDefaultPlacement(placement configv1.DefaultPlacement) {
	c.Helper()
	c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(c.Context(), &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: ingress.ConfigName}})))
	c.PatchStatus("installer", ingressObject, `{"status":{"defaultPlacement":%q}}`, placement)
}

func (c *cluster) create(name string, replicas *int32) {
	c.Helper()
	c.Create(stock, &operatorv1.IngressController{
		ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: name},
		Spec:       operatorv1.IngressControllerSpec{Domain: name + ".example.com", Replicas: replicas},
	})
}

func (c *cluster) controller() *operatorv1.IngressController {
	c.Helper()
	return modules.Get[operatorv1.IngressController](c.Cluster, controllerObject)
}

func (c *cluster) spec(placement *operatorv1.NodePlacement, replicas *int32) func() error {
	return func() error {
		c.Helper()
		got := c.controller().Spec
		if !equality.Semantic.DeepEqual(got.NodePlacement, placement) || !ptr.Equal(got.Replicas, replicas) {
			return fmt.Errorf("placement %+v with %v replicas, want %+v with %v",
				got.NodePlacement, ptr.Deref(got.Replicas, -1), placement, ptr.Deref(replicas, -1))
		}
		return nil
	}
}

func (c *cluster) pinned(replicas *int32) func() error { return c.spec(placement, replicas) }

// released checks that the module owns nothing, and that an autoscaler can read the number.
func (c *cluster) released(replicas *int32) func() error {
	return func() error {
		return errors.Join(c.spec(nil, replicas)(), c.scale(replicas)(), c.Untouched(controllerObject))
	}
}

func (c *cluster) scale(want *int32) func() error {
	return func() error {
		scale := &autoscalingv1.Scale{}
		err := c.Admin.SubResource("scale").Get(c.Context(), c.controller(), scale)
		if (err == nil) != (want != nil) || want != nil && scale.Spec.Replicas != *want {
			return fmt.Errorf("/scale has %d replicas, want %d, or none for -1: %s", scale.Spec.Replicas, ptr.Deref(want, -1), fmt.Sprint(err))
		}
		return nil
	}
}

// rollOut stands in for the ingress operator and the Deployment controller.
func (c *cluster) rollOut() {
	c.Helper()
	spec := c.controller().Spec
	labels := map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
	pod := corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "router", Image: "router"}},
		NodeSelector: map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"},
	}
	if p := spec.NodePlacement; p != nil {
		pod.NodeSelector, pod.Tolerations = maps.Clone(p.NodeSelector.MatchLabels), slices.Clone(p.Tolerations)
	}
	router, write := modules.Find[appsv1.Deployment](c.Cluster, routerObject), c.Update
	if router == nil {
		router, write = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routerObject.Namespace, Name: routerObject.Name}}, c.Create
	}
	router.Spec.Replicas = ptr.To(ptr.Deref(spec.Replicas, 2))
	router.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	router.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}
	write(stock, router)
	c.CompleteRollouts(routerObject)
}

func (c *cluster) inForce(status metav1.ConditionStatus, reason string, texts ...string) func() error {
	return c.HasCondition(controllerObject, "IngressTopologyPatchInForce", status, reason, texts...)
}

func (c *cluster) events() map[string]int { return c.Events(ingress.IngressControllerNamespace) }

func (c *cluster) reconciler(flags ...string) *modules.Reconciler {
	c.Helper()
	l := c.Reconciler(flags...)
	l.OtherClients = []func(){c.rollOut}
	return l
}

// writes are the module's write requests, except those on the Lease.
type writes struct{ spec, status, events, others []apiserver.Write }

func (c *cluster) writes(account string, during func()) (w writes) {
	c.Helper()
	for _, write := range c.Server.WritesDuring(c, apiserver.AccountUser(modules.SystemNamespace, account), during) {
		switch path, _, _ := strings.Cut(write.URI, "?"); {
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
