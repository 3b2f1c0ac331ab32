// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	standalone "github.com/solonode/sno/auth/controller"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
	"github.com/solonode/sno/topology/workload"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	needs, needsNot = "4.7.13", "4.20.1" // the override

	key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
	set = `{"` + key + `":true}`

	managed = `{"managementState":"Managed"}`
	optOut  = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"auth"}}}`

	condition = "AuthTopologyPatchInForce"
)

var suite = modules.Suite{
	Module:  func() controller.Module { return &standalone.Module{} },
	Options: apiserver.Options{CRDs: []string{crds.Infrastructures, crds.ClusterVersions, crds.Authentications}},
}

var (
	authenticationObject = modules.Object("operator.openshift.io/v1", "Authentication", "", auth.ConfigName)
	clusterVersionObject = modules.Object("config.openshift.io/v1", "ClusterVersion", "", "version")
	serverObject         = modules.Object("apps/v1", "Deployment", auth.OAuthServerNamespace, auth.OAuthServerName)
	apiServerObject      = modules.Object("apps/v1", "Deployment", auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

var deployments = []controller.Object{serverObject, apiServerObject}

// cluster has no operators; the test writes in their place.
type cluster struct{ *modules.Cluster }

// install returns a cluster whose Deployments have no field of the shape.
func install(t *testing.T, mode configv1.TopologyMode, release string, nodes int) *cluster {
	t.Helper()
	c := &cluster{suite.Cluster(t)}
	c.flip(mode)
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: clusterVersionObject.Name}}
	cv.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	c.Create("installer", cv)
	c.upgrade(release)
	c.Create("cluster-version-operator", authenticationOf(managed))
	c.Apply("gitops", deploymentOf(serverObject), deploymentOf(apiServerObject))
	c.installNodes(nodes)
	return c
}

func (c *cluster) flip(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := mode
	if mode == external {
		infrastructure = ha
	}
	c.SetTopology(mode, infrastructure)
}

func (c *cluster) upgrade(release string) {
	c.Helper()
	cv := modules.Get[configv1.ClusterVersion](c.Cluster, clusterVersionObject)
	now := metav1.Now()
	cv.Status.VersionHash, cv.Status.Desired = "x", configv1.Release{Version: release, Image: "x"}
	cv.Status.History = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: release, Image: "x", StartedTime: now, CompletionTime: &now,
	}}
	c.NoError(c.Admin.Status().Update(c.Context(), cv, client.FieldOwner("cluster-version-operator")))
}

func authenticationOf(spec string) *unstructured.Unstructured {
	u := authenticationObject.Unstructured()
	var decoded map[string]any
	if json.Unmarshal([]byte(spec), &decoded) == nil {
		u.Object["spec"] = decoded
	}
	return u
}

func (c *cluster) editOverrides(manager, overrides string) {
	c.Helper()
	c.Patch(manager, authenticationObject, `{"spec":{"unsupportedConfigOverrides":%s}}`, overrides)
}

func (c *cluster) authentication() *operatorv1.Authentication {
	c.Helper()
	return modules.Get[operatorv1.Authentication](c.Cluster, authenticationObject)
}

func (c *cluster) overrides() string {
	c.Helper()
	u := authenticationOf("")
	c.NoError(c.Admin.Get(c.Context(), authenticationObject.Key(), u))
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "unsupportedConfigOverrides")
	c.NoError(err)
	if !found {
		return "absent"
	}
	text, err := json.Marshal(value)
	c.NoError(err)
	return string(text)
}

func (c *cluster) overridesAre(want string) func() error {
	return func() error {
		c.Helper()
		if got := c.overrides(); got != want {
			return fmt.Errorf("unsupportedConfigOverrides are %s, want %s", got, want)
		}
		return nil
	}
}

func (c *cluster) fieldsOf(manager string) string {
	c.Helper()
	for _, entry := range c.authentication().ManagedFields {
		if entry.Manager == manager && entry.Subresource == "" {
			text, err := entry.FieldsV1.MarshalJSON()
			c.NoError(err)
			return string(text)
		}
	}
	return ""
}

func deploymentOf(o controller.Object) *unstructured.Unstructured {
	u := o.Unstructured()
	labels := map[string]any{"app": o.Name}
	u.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "server", "image": "example.com/server:1"}}},
		},
	}
	return u
}

func withReplicas(o controller.Object, n int64) *unstructured.Unstructured {
	u := deploymentOf(o)
	u.Object["spec"].(map[string]any)["replicas"] = n
	return u
}

func (c *cluster) deployment(o controller.Object) *appsv1.Deployment {
	c.Helper()
	return modules.Get[appsv1.Deployment](c.Cluster, o)
}

// installNodes creates control-plane nodes up to the number, and a worker.
func (c *cluster) installNodes(n int) {
	c.Helper()
	for i := range n + 1 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("master-%d", i), Labels: map[string]string{"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}}}
		if i == n {
			node.Name, node.Labels = "worker", map[string]string{"node-role.kubernetes.io/worker": ""}
		}
		c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(c.Context(), node)))
	}
}

func (c *cluster) reconciler(flags ...string) *modules.Reconciler {
	c.Helper()
	l := c.Reconciler(flags...)
	l.OtherClients = append(l.OtherClients, c.rollOut)
	return l
}

func (c *cluster) rollOut() { c.CompleteRollouts(serverObject, apiServerObject) }

func (c *cluster) shaped(o controller.Object, replicas int32, unavailable, surge int, antiAffinity bool) func() error {
	return func() error {
		c.Helper()
		d := c.deployment(o)
		pod := d.Spec.Template.Spec
		gone, surplus, ok := workload.Steps(d.Spec.Strategy, replicas)
		_, pinned := pod.NodeSelector["node-role.kubernetes.io/master"]
		separate := len(workload.AntiAffinityOf(d).RequiredDuringSchedulingIgnoredDuringExecution) > 0
		if *d.Spec.Replicas != replicas || !ok || gone != unavailable || surplus != surge || separate != antiAffinity || !pinned ||
			!workload.ToleratesControlPlane(pod.Tolerations) {
			return fmt.Errorf("%s, want %d replicas, %d unavailable, %d surge, anti-affinity %t: %+v",
				o.Name, replicas, unavailable, surge, antiAffinity, d.Spec)
		}
		return nil
	}
}

func (c *cluster) onOne() error {
	c.Helper()
	return errors.Join(c.shaped(serverObject, 1, 0, 1, false)(), c.shaped(apiServerObject, 1, 1, 0, true)())
}

func (c *cluster) onThree() error {
	c.Helper()
	return errors.Join(c.shaped(serverObject, 3, 2, 3, true)(), c.shaped(apiServerObject, 3, 1, 0, true)())
}

// ownsNothing checks that the module owns only conditions.
func (c *cluster) ownsNothing() error {
	c.Helper()
	return c.Untouched(authenticationObject, serverObject, apiServerObject)
}

// Workers must not be cached, so that memory does not grow with their number.
func TestReadsOnlyControlPlaneNodes(t *testing.T) {
	for _, o := range (&standalone.Module{}).Objects() {
		if (o.Kind == "Node") != (o.Name == "") || o.Kind == "Node" && o.Labels != auth.ControlPlaneNodeLabel {
			t.Errorf("%+v", o)
		}
	}
}
