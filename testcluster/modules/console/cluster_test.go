// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	standalone "github.com/solonode/sno/console/controller"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
	"github.com/solonode/sno/topology/workload"
)

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	condition       = "ConsoleTopologyPatchInForce"
	managementState = `{"spec":{"managementState":%q}}`
	optOut          = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":%s}}}`
)

var suite = modules.Suite{
	Module:  func() controller.Module { return &standalone.Module{} },
	Options: apiserver.Options{CRDs: []string{crds.Infrastructures, crds.ClusterVersions, crds.Consoles}},
}

var (
	operatorObject  = modules.Object("operator.openshift.io/v1", "Console", "", console.OperatorName)
	versionObject   = modules.Object("config.openshift.io/v1", "ClusterVersion", "", "version")
	consoleObject   = modules.Object("apps/v1", "Deployment", console.Namespace, console.ConsoleName)
	downloadsObject = modules.Object("apps/v1", "Deployment", console.Namespace, console.DownloadsName)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

var deployments = []controller.Object{consoleObject, downloadsObject}

// cluster has no controllers; the test writes in their place.
type cluster struct {
	*modules.Cluster
	release modules.VersionOperator // contains downloads
}

func newCluster(t *testing.T, mode configv1.TopologyMode) *cluster {
	t.Helper()
	c := suite.Cluster(t)
	c.SetTopology(mode, mode)
	return &cluster{c, c.VersionOperator(manifest(console.DownloadsName))}
}

// installed is a cluster with two replicas of both Deployments, and a person's overrides.
func installed(t *testing.T, mode configv1.TopologyMode, overrides ...configv1.ComponentOverride) *cluster {
	t.Helper()
	c := newCluster(t, mode)
	c.Apply("installer", unshaped(consoleObject), operatorOf(""))
	c.installVersion()
	c.release.RunOnce()
	if len(overrides) > 0 {
		c.edit(overrides...)
		c.release.Observe()
	}
	c.CompleteRollouts(deployments...)
	return c
}

// stocked is a cluster whose console operator manages both Deployments.
func stocked(t *testing.T, change func(*appsv1.Deployment)) *cluster {
	t.Helper()
	c := newCluster(t, sr)
	c.release = c.VersionOperator()
	c.Apply("installer", operatorOf(operatorv1.Managed))
	c.installVersion()
	for _, o := range deployments {
		d := manifest(o.Name)
		change(d)
		c.Create("console", d)
	}
	return c
}

func (c *cluster) stock(change func(*appsv1.Deployment)) {
	c.Helper()
	for _, o := range deployments {
		d, want := c.deployment(o), manifest(o.Name)
		change(want)
		d.Spec = want.Spec
		c.Update("console", d)
	}
}

func twoReplicas(*appsv1.Deployment) {}

func oneReplica(d *appsv1.Deployment) {
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
}

func operatorOf(state operatorv1.ManagementState) *unstructured.Unstructured {
	u := operatorObject.Unstructured()
	u.Object["spec"] = map[string]any{}
	if state != "" {
		u.Object["spec"] = map[string]any{"managementState": string(state)}
	}
	return u
}

func (c *cluster) installVersion() {
	c.Helper()
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: versionObject.Name}}
	v.Spec.ClusterID, v.Spec.Channel = "11111111-2222-4333-8444-555555555555", "stable"
	c.Create("cluster-bootstrap", v)
}

// edit sets spec.overrides by an update of the object, as `oc edit` does.
func (c *cluster) edit(overrides ...configv1.ComponentOverride) {
	c.Helper()
	v := c.version()
	v.Spec.Overrides = overrides
	c.Update("oc", v)
}

func (c *cluster) version() *configv1.ClusterVersion {
	c.Helper()
	return modules.Get[configv1.ClusterVersion](c.Cluster, versionObject)
}

func (c *cluster) deployment(o controller.Object) *appsv1.Deployment {
	c.Helper()
	return modules.Get[appsv1.Deployment](c.Cluster, o)
}

// reconciler has no cache. The cluster-version-operator and the Deployment controller write between its reconciles.
type reconciler struct{ *modules.Reconciler }

func (c *cluster) reconciler(flags ...string) reconciler {
	c.Helper()
	l := reconciler{c.ReconcilerOf(func(made *modules.Reconciler) (controller.ReconcileFunc, error) {
		env := made.Environment
		env.Reader = nil
		return made.Module.Reconciler(env)
	}, flags...)}
	l.OtherClients = []func(){func() { c.release.RunOnce() }, func() { c.CompleteRollouts(deployments...) }}
	return l
}

// shaped checks that the Deployments have the shape of one node, and that the next rollout is no outage.
func (c *cluster) shaped(objects ...controller.Object) func() error {
	return func() error {
		c.Helper()
		for _, o := range objects {
			d := c.deployment(o)
			pod := d.Spec.Template.Spec
			unavailable, surge, ok := workload.Steps(d.Spec.Strategy, 1)
			_, pinned := pod.NodeSelector["node-role.kubernetes.io/master"]
			// The first rollout may delete an old pod with anti-affinity before the new one runs.
			outage := !ok || surge != 1 || unavailable > 0 && workload.RolledOut(d)
			if *d.Spec.Replicas != 1 || outage || !pinned || !workload.ToleratesControlPlane(pod.Tolerations) || pod.Affinity != nil {
				return fmt.Errorf("%s does not have the shape of one node: %+v", o.Name, d.Spec)
			}
		}
		return nil
	}
}

func (c *cluster) replicas(o controller.Object, want int32) func() error {
	return func() error {
		c.Helper()
		if got := *c.deployment(o).Spec.Replicas; got != want {
			return fmt.Errorf("%s has %d replicas, want %d", o.Name, got, want)
		}
		return nil
	}
}

func (c *cluster) overrides(want ...configv1.ComponentOverride) func() error {
	return func() error {
		c.Helper()
		if diff := cmp.Diff(want, c.version().Spec.Overrides); diff != "" {
			return fmt.Errorf("overrides (-want +got):\n%s", diff)
		}
		return nil
	}
}

func (c *cluster) untouched() error {
	c.Helper()
	return c.Untouched(consoleObject, downloadsObject, versionObject)
}

func (c *cluster) snapshot(objects ...controller.Object) []map[string]any {
	c.Helper()
	var all []map[string]any
	for _, o := range objects {
		u := o.Unstructured()
		c.NoError(c.Admin.Get(c.Context(), o.Key(), u))
		out := map[string]any{"spec": u.Object["spec"]}
		for _, field := range append(operand.Fields(), overrides.Field) {
			managers, err := ownership.Managers(u, field)
			c.NoError(err)
			out[field] = managers
		}
		all = append(all, out)
	}
	return all
}

// unshaped is a Deployment without any field of the shape.
func unshaped(o controller.Object) *unstructured.Unstructured {
	labels := map[string]any{"app": "console", "component": manifest(o.Name).Labels["component"]}
	u := o.Unstructured()
	u.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "server", "image": "server"}}},
		},
	}
	return u
}

func manifest(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "console", "component": map[string]string{console.ConsoleName: "ui", console.DownloadsName: "downloads"}[name]}
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
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)},
			},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{onNode(labels)}}},
		}},
	}
	return d
}

func onNode(labels map[string]string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: "kubernetes.io/hostname"}
}

// others are overrides of other clients, some of which differ from the module's in one field only.
func others(n int) []configv1.ComponentOverride {
	ours := decision.Override()
	list := []configv1.ComponentOverride{ours, ours, ours, ours}
	list[0].Kind, list[1].Group, list[2].Namespace, list[3].Name = "DaemonSet", "", "openshift-downloads", "console"
	for i := len(list); i < n; i++ {
		list = append(list, configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "n", Name: fmt.Sprint("d", i), Unmanaged: i%2 == 0})
	}
	return list[:n]
}
