// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	standalone "github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	namespace = "workload"
)

var stockKinds = []string{
	"machineconfigpools.machineconfiguration.openshift.io", "controllerconfigs.machineconfiguration.openshift.io",
	"kubeletconfigs.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io",
	"machineconfigurations.operator.openshift.io",
}

var suite = modules.Suite{
	Module:  func() controller.Module { return &standalone.Module{} },
	Options: apiserver.Options{CRDs: append([]string{crds.Infrastructures}, stockKinds...)},
	ExtraObjects: []controller.Object{
		podNamed(""), budgetNamed(""), modules.Object("apps/v1", "ReplicaSet", namespace, ""), modules.Object("apps/v1", "DaemonSet", namespace, ""),
	},
}

var (
	controllerConfigObject = modules.Object("machineconfiguration.openshift.io/v1", "ControllerConfig", "", "machine-config-controller")
	machineConfigObject    = modules.Object("machineconfiguration.openshift.io/v1", "MachineConfig", "", machineconfig.ShutdownMachineConfigName)
	ownKubeletConfigObject = modules.Object("machineconfiguration.openshift.io/v1", "KubeletConfig", "", machineconfig.ShutdownName)
	operatorObject         = modules.Object("operator.openshift.io/v1", "MachineConfiguration", "", machineconfig.OperatorName)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

// cluster has no kubelet, and pods without a grace period, so evicted pods are deleted at once.
type cluster struct{ *modules.Cluster }

func newCluster(t *testing.T, mode configv1.TopologyMode, nodes ...string) *cluster {
	t.Helper()
	return prepare(suite.Cluster(t), mode, nodes...)
}

func prepare(of *modules.Cluster, mode configv1.TopologyMode, nodes ...string) *cluster {
	of.Helper()
	c := &cluster{of}
	c.AllowTopologies(mode)
	c.setTopology(mode)
	for _, name := range nodes {
		c.addNode(name)
	}
	return c
}

func (c *cluster) setTopology(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := ha
	if mode == sr {
		infrastructure = sr
	}
	c.SetTopology(mode, infrastructure)
}

func nodeNamed(name string) controller.Object { return modules.Object("v1", "Node", "", name) }
func podNamed(name string) controller.Object  { return modules.Object("v1", "Pod", namespace, name) }
func budgetNamed(name string) controller.Object {
	return modules.Object("policy/v1", "PodDisruptionBudget", namespace, name)
}

func poolNamed(name string) controller.Object {
	return modules.Object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "", name)
}

// addNode adds a ready worker, which is also a master if its name begins with an m.
func (c *cluster) addNode(name string) {
	c.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}
	if strings.HasPrefix(name, "m") {
		node.Labels[machineconfig.MasterRole] = ""
	}
	c.Create("kubelet", node)
	c.PatchStatus("kubelet", nodeNamed(name), `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
}

// annotate sets an annotation of a node, or removes it if the value is empty.
func (c *cluster) annotate(manager, node, name, value string) {
	c.Helper()
	quoted := fmt.Sprintf("%q", value)
	if value == "" {
		quoted = "null"
	}
	c.Patch(manager, nodeNamed(node), `{"metadata":{"annotations":{%q:%s}}}`, name, quoted)
}

func (c *cluster) request(node, request string) {
	c.Helper()
	c.annotate("agent", node, machineconfig.DesiredDrainAnnotation, request)
}

func (c *cluster) cordon(node string, unschedulable bool) {
	c.Helper()
	c.Patch("kubectl", nodeNamed(node), `{"spec":{"unschedulable":%v}}`, unschedulable)
}

// checkNode checks which request was acknowledged, and whether the node is cordoned.
func (c *cluster) checkNode(node, request string, cordoned bool) error {
	c.Helper()
	n := modules.Get[corev1.Node](c.Cluster, nodeNamed(node))
	if got := n.Annotations[machineconfig.LastAppliedDrainAnnotation]; got != request || n.Spec.Unschedulable != cordoned {
		return fmt.Errorf("node %s: %q, cordoned %v; want %q and %v", node, got, n.Spec.Unschedulable, request, cordoned)
	}
	return nil
}

func (c *cluster) waitForNode(node, request string, cordoned bool) {
	c.Helper()
	c.Eventually("node "+node+" has "+request, func() error { return c.checkNode(node, request, cordoned) })
}

func podsOf(app string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": app}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// pod creates a running pod of the application of that name.
func (c *cluster) pod(node, name string, change ...func(*corev1.Pod)) {
	c.Helper()
	_, template := podsOf(name)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = namespace, name
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = node, ptr.To[int64](0)
	for _, f := range change {
		f(pod)
	}
	c.Create("test", pod)
	c.PatchStatus("kubelet", podNamed(name), `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
}

func withFinalizer(p *corev1.Pod) { p.Finalizers = []string{"test.example.com/wait"} }

func (c *cluster) terminate(pod string) {
	c.Helper()
	c.Patch("kubelet", podNamed(pod), `{"metadata":{"finalizers":null}}`)
}

func (c *cluster) wantList(kind string, want []string, options ...client.ListOption) {
	c.Helper()
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"}}
	c.NoError(c.Admin.List(c.Context(), list, options...))
	var got []string
	for _, object := range list.Items {
		got = append(got, object.Name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		c.Errorf("%s %v, want %v", kind, got, want)
	}
}

func (c *cluster) wantPods(want ...string) {
	c.Helper()
	c.wantList("Pod", want, client.InNamespace(namespace))
}

func (c *cluster) wantCordoned(want ...string) {
	c.Helper()
	c.wantList("Node", want, client.MatchingFields{"spec.unschedulable": "true"})
}

// budget creates or updates the budget of an application.
func (c *cluster) budget(name string, allowed int) {
	c.Helper()
	c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(c.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	})))
	c.PatchStatus("kube-controller-manager", budgetNamed(name),
		`{"status":{"disruptionsAllowed":%d,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"observedGeneration":1}}`, allowed)
}

// pool creates a pool for a role. spec is JSON that begins with a comma.
func (c *cluster) pool(name, spec string) {
	c.Helper()
	u := poolNamed(name).Unstructured()
	c.NoError(u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool",
		"metadata":{"name":%q,"labels":{"pools.operator.machineconfiguration.openshift.io/%[1]s":""}},
		"spec":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/%[1]s":""}}%[2]s}}`, name, spec)))
	c.Create("test", u)
}

// installStock creates the ControllerConfig of a machine-config operator.
func (c *cluster) installStock() {
	c.Helper()
	u := controllerConfigObject.Unstructured()
	u.Object["spec"] = map[string]any{
		"additionalTrustBundle": nil, "baseOSContainerImage": "", "cloudProviderCAData": nil, "cloudProviderConfig": "", "clusterDNSIP": "",
		"dns": nil, "images": map[string]any{}, "infra": nil, "ipFamilies": "IPv4", "kubeAPIServerServingCAData": "Kg==", "network": nil,
		"proxy": nil, "releaseImage": "", "rootCAData": "Kg==",
	}
	c.Create("machine-config-operator", u)
}

// evictionRetry is the longest wait after a refused eviction.
const evictionRetry = 5 * time.Second

// reconciler has a fake clock.
type reconciler struct {
	*modules.Reconciler
	time   *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	seen   []string
	// fault replaces the response of the API server unless it returns nil.
	fault func(*http.Request) *http.Response
}

type faultInjector struct {
	*reconciler
	next http.RoundTripper
}

func (f faultInjector) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.fault != nil {
		if answer := f.fault(r); answer != nil {
			return answer, nil
		}
	}
	return f.next.RoundTrip(r)
}

// configs caches client certificates, because it takes long to create them.
var configs = map[*apiserver.Server]*rest.Config{}

func (c *cluster) reconciler(flags ...string) *reconciler {
	c.Helper()
	return c.reconcilerOf(c.config(), nil, flags...)
}

func (c *cluster) config() *rest.Config {
	c.Helper()
	if configs[c.Server] == nil {
		configs[c.Server] = c.Server.Config(c, suite.User(), "system:serviceaccounts", "system:authenticated")
	}
	return configs[c.Server]
}

func once(env *controller.Environment) { env.Once = true }

// reconcilerOf is reconciler with a config for nodes and pods, and another environment unless change is nil.
func (c *cluster) reconcilerOf(config *rest.Config, change func(*controller.Environment), flags ...string) *reconciler {
	c.Helper()
	r := &reconciler{time: clocktesting.NewFakePassiveClock(time.Now()), events: events.NewFakeRecorder(10000)}
	r.Reconciler = c.ReconcilerOf(func(of *modules.Reconciler) (controller.ReconcileFunc, error) {
		config := rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return faultInjector{r, next} })
		env := of.Environment
		if change != nil {
			change(&env)
		}
		return of.Module.(*standalone.Module).DrainingReconciler(env, standalone.Draining{Config: config, Events: r.events, Clock: r.time})
	}, flags...)
	return r
}

func (r *reconciler) advance(d time.Duration) { r.time.SetTime(r.time.Now().Add(d)) }

func (r *reconciler) reconcileOnce() patch.Result {
	r.Helper()
	result, err := r.Step()
	r.NoError(err)
	return result
}

// untilIdle reconciles until nothing is due within evictionRetry.
func (r *reconciler) untilIdle() patch.Result {
	r.Helper()
	for range 100 {
		result := r.reconcileOnce()
		if result.After == 0 || result.After > evictionRetry {
			return result
		}
		r.advance(result.After)
	}
	r.Fatal(modules.ErrNotSettled)
	return patch.Result{}
}

func (r *reconciler) wantIdle(state patch.State, reason string) {
	r.Helper()
	r.CheckResult(r.untilIdle(), state, reason)
}

// wantEvent checks that an event has all the texts.
func (r *reconciler) wantEvent(texts ...string) {
	r.Helper()
	for len(r.events.Events) > 0 {
		r.seen = append(r.seen, <-r.events.Events)
	}
	if !slices.ContainsFunc(r.seen, func(event string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(event, text) })
	}) {
		r.Errorf("no event has %q:\n%s", texts, strings.Join(r.seen, "\n"))
	}
}
