// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	standalone "github.com/solonode/sno/approver/controller"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

var suite = modules.Suite{
	Module:  func() controller.Module { return &standalone.Module{} },
	Options: apiserver.Options{CRDs: []string{crds.Infrastructures, crds.ClusterVersions, crds.ClusterOperators}},
	ExtraObjects: []controller.Object{
		modules.Object("v1", "Node", "", ""), modules.Object("certificates.k8s.io/v1", "CertificateSigningRequest", "", ""),
	},
}

var (
	operatorObject   = modules.Object("config.openshift.io/v1", "ClusterOperator", "", "machine-approver")
	versionObject    = modules.Object("config.openshift.io/v1", "ClusterVersion", "", "version")
	deploymentObject = modules.Object("apps/v1", "Deployment", decision.Namespace, decision.DeploymentName)
	configObject     = modules.Object("v1", "ConfigMap", decision.Namespace, decision.ConfigMapName)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

// mayOverride is what only --mode=off needs.
var mayOverride = [6]string{"", "config.openshift.io", "clusterversions", "", "version", "patch"}

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	// Literals, so that a changed constant fails a test.
	namespace, stockName, configName = "openshift-cluster-machine-approver", "machine-approver", "machine-approver-config"
	editAnnotation                   = "sno.solonode.github.io/approver-edit"
	optOut                           = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":%s}}}`

	cvo        = "cluster-version-operator"
	nodeOff    = "--mode=node-client-off"
	off        = "--mode=off"
	openshift  = "machine.openshift.io"
	clusterAPI = "cluster.x-k8s.io"

	personsConfig = "# Who approves what. Ask Ada before you change this.\nfutureSetting: [1, 2] # from the next release\n" +
		"nodeClientCert:\n  # kept for the audit\n  note: \"see #42\"\n"
)

type cluster struct {
	*modules.Cluster
	versionOperator modules.VersionOperator
}

func install(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: suite.Cluster(t)}
	c.versionOperator = c.VersionOperator()
	c.setTopology(sr)
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	v.Spec.Overrides = []configv1.ComponentOverride{
		{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true},
	}
	c.Create("installer", v)
	labels := map[string]string{"app": "machine-approver"}
	c.Create(cvo, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-approver"}}, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stockName},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"openshift.io/required-scc": "hostnetwork-v2"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-approver-controller", Image: "machine-approver"}}},
			},
		},
	})
	c.runOtherControllers()
	return c
}

func (c *cluster) setTopology(mode configv1.TopologyMode) { c.Helper(); c.SetTopology(mode, mode) }

func (c *cluster) deployment() *appsv1.Deployment {
	return modules.Get[appsv1.Deployment](c.Cluster, deploymentObject)
}

func (c *cluster) config() *corev1.ConfigMap {
	return modules.Find[corev1.ConfigMap](c.Cluster, configObject)
}

func (c *cluster) overrides() []configv1.ComponentOverride {
	return modules.Get[configv1.ClusterVersion](c.Cluster, versionObject).Spec.Overrides
}

// runOtherControllers acts for the cluster-version-operator and the Deployment controller.
func (c *cluster) runOtherControllers() {
	c.Helper()
	c.scaleUp()
	c.versionOperator.Observe()
	c.CompleteRollouts(deploymentObject)
}

func (c *cluster) afterOtherControllers(check func() error) func() error {
	return func() error {
		c.runOtherControllers()
		return check()
	}
}

// scaleUp restores the replica unless the override was observed. Unlike the stand-in, it keeps annotations of
// the pod template.
func (c *cluster) scaleUp() {
	c.Helper()
	unmanaged := func(o configv1.ComponentOverride) bool { return o.Name == stockName && o.Unmanaged }
	v, d := modules.Get[configv1.ClusterVersion](c.Cluster, versionObject), modules.Find[appsv1.Deployment](c.Cluster, deploymentObject)
	if d == nil || *d.Spec.Replicas == 1 || (v.Status.ObservedGeneration == v.Generation && slices.ContainsFunc(v.Spec.Overrides, unmanaged)) {
		return
	}
	d.Spec.Replicas = ptr.To[int32](1)
	if err := c.Admin.Update(c.Context(), d, client.FieldOwner(cvo)); !apierrors.IsConflict(err) { // the operator would retry
		c.NoError(err)
	}
}

func (c *cluster) reconciler(flags ...string) *modules.Reconciler {
	c.Helper()
	l := c.Reconciler(flags...)
	l.OtherClients = []func(){c.runOtherControllers}
	return l
}

// permit grants the right of ../config/off if the mode needs it, and returns a function that takes it away.
func (c *cluster) permit(mode string) (revoke func()) {
	c.Helper()
	if mode != off {
		return func() {}
	}
	objects := apiserver.Manifests(c, "testdata/module/config/off", "role.yaml", "role_binding.yaml")
	expect := func(granted bool) {
		c.Eventually("the change of rights is effective", func() error {
			if c.May(suite.Program(), mayOverride) != granted {
				return errors.New("not yet")
			}
			return nil
		})
	}
	for _, u := range objects {
		c.Server.Put(c, u)
	}
	expect(true)
	return func() {
		for _, u := range objects {
			c.NoError(c.Admin.Delete(c.Context(), u))
		}
		expect(false)
	}
}

func (c *cluster) text() string {
	c.Helper()
	if config := c.config(); config != nil {
		return config.Data["config.yaml"]
	}
	return ""
}

func (c *cluster) disabled() bool {
	disabled, err := decision.NodeClientDisabled(c.text())
	return disabled && err == nil
}

func (c *cluster) configure(text string) {
	c.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: configName}, Data: map[string]string{"config.yaml": text}}
	if c.config() == nil {
		c.Create("kubectl-create", config)
		return
	}
	c.Patch("kubectl-edit", configObject, `{"data":{"config.yaml":%q}}`, text)
}

// checkReleased returns an error if anything of the module is left.
func (c *cluster) checkReleased() error {
	d, overrides := c.deployment(), c.overrides()
	if *d.Spec.Replicas != 1 || d.Spec.Template.Annotations[editAnnotation] != "" || len(overrides) != 1 {
		return fmt.Errorf("%d replicas, annotations %v, overrides %v", *d.Spec.Replicas, d.Spec.Template.Annotations, overrides)
	}
	return c.Untouched(deploymentObject, versionObject, configObject)
}

func (c *cluster) hasCondition(condition string, status metav1.ConditionStatus, reason string, texts ...string) func() error {
	return c.HasCondition(operatorObject, "ApproverTopology"+condition, status, reason, texts...)
}

func (c *cluster) createRequest(signer string) *certificatesv1.CertificateSigningRequest {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.NoError(err)
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	r.Spec.SignerName, r.Spec.Usages = signer, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	r.Spec.Request, err = cert.MakeCSR(key, &pkix.Name{}, nil, nil)
	c.NoError(err)
	c.Create("kubelet", r)
	return r
}

func (c *cluster) createDeniedRequest(signer string) {
	c.Helper()
	r := c.createRequest(signer)
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "ByHand"}}
	c.NoError(c.Admin.SubResource("approval").Update(c.Context(), r))
}

// serveMachines serves v1beta1 of the group.
func (c *cluster) serveMachines(group string) {
	c.Helper()
	crd := modules.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "machines."+group).Unstructured()
	if strings.HasSuffix(group, ".x-k8s.io") {
		crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"})
	}
	crd.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced",
		"names": map[string]any{"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
		"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}
	c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(c.Context(), crd)))
	c.Eventually("Machines of "+group+" are served", func() error { return c.listMachines(group) })
}

// unserveMachines also removes all Machines of the group.
func (c *cluster) unserveMachines(group string) {
	c.Helper()
	crd := modules.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "machines."+group)
	c.NoError(client.IgnoreNotFound(c.Admin.Delete(c.Context(), crd.Unstructured())))
	c.Eventually("Machines of "+group+" are not served", func() error {
		if err := c.listMachines(group); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return errors.Join(errors.New("they are still served"), err)
		}
		return nil
	})
}

func (c *cluster) listMachines(group string) error {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: group + "/v1beta1", Kind: "MachineList"}}
	return c.Admin.List(c.Context(), list)
}

func (c *cluster) createMachine(group, name string) controller.Object {
	c.Helper()
	o := modules.Object(group+"/v1beta1", "Machine", "default", name)
	c.Create("installer", o.Unstructured())
	return o
}
