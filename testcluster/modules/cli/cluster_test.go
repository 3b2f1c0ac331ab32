// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/cli/rehearsal"
	consolecontroller "github.com/solonode/sno/console/controller"
	"github.com/solonode/sno/ingress"
	ingresscontroller "github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
)

const user = "test-admin"

type cluster struct {
	*testing.T
	server     *apiserver.Server
	admin      client.Client
	kubeconfig string
}

// installed are the objects of the installer and of operators, by field manager.
const installed = `
- cluster-bootstrap: {apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, spec: {platformSpec: {type: None}}}
- cluster-bootstrap: {apiVersion: config.openshift.io/v1, kind: Ingress, metadata: {name: cluster}, spec: {domain: apps.example.com}}
- cluster-bootstrap: {apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version},
    spec: {clusterID: 00000000-0000-4000-8000-000000000000}}
- cluster-ingress-operator: {apiVersion: operator.openshift.io/v1, kind: IngressController,
    metadata: {name: default, namespace: openshift-ingress-operator}, spec: {replicas: 2}}
- console-operator: {apiVersion: apps/v1, kind: Deployment, metadata: {name: console, namespace: openshift-console}, spec: &spec {replicas: 2,
    selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: main}]}}}}
- cluster-version-operator: {apiVersion: apps/v1, kind: Deployment, metadata: {name: downloads, namespace: openshift-console}, spec: *spec}
`

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := shared.Server(t)
	c := &cluster{t, server, server.Admin(t), server.Kubeconfig(t, user, "system:masters")}
	for _, name := range []string{"openshift-ingress-operator", "openshift-ingress", "openshift-console", "sno-system"} {
		c.must(client.IgnoreAlreadyExists(c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	var objects []map[string]*unstructured.Unstructured
	c.must(yaml.Unmarshal([]byte(installed), &objects))
	for _, m := range objects {
		for manager, object := range m {
			c.must(c.admin.Create(t.Context(), object, client.FieldOwner(manager)))
			t.Cleanup(func() { c.must(client.IgnoreNotFound(c.admin.Delete(context.WithoutCancel(t.Context()), object))) })
		}
	}
	c.setTopology(configv1.SingleReplicaTopologyMode)
	return c
}

func (c *cluster) setTopology(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	status := fmt.Sprintf(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"platformStatus":{"type":"None"}}}`, mode, mode)
	c.must(c.admin.Status().Patch(c.Context(), infrastructure, client.RawPatch(types.MergePatchType, []byte(status))))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) call(args, out string) {
	c.Helper()
	got := run(c.T, append(strings.Fields(args), "--kubeconfig", c.kubeconfig)...) // the API server may warn
	if got.code != 0 {
		c.Errorf("%s: exit code %d\n%s%s", args, got.code, got.out, got.err)
	}
	contains(c.T, args, got.out, out)
}

func (c *cluster) router() (*unstructured.Unstructured, string) {
	c.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("IngressController"))
	c.must(c.admin.Get(c.Context(), client.ObjectKey{Namespace: "openshift-ingress-operator", Name: "default"}, u))
	spec, err := json.Marshal(u.Object["spec"])
	c.must(err)
	return u, string(spec)
}

// owned reports whether the ingress module owns fields of the IngressController.
func (c *cluster) owned(subresource string) bool {
	c.Helper()
	router, _ := c.router()
	return slices.ContainsFunc(router.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == decision.FieldOwner && entry.Subresource == subresource
	})
}

// writes are the requests that a step may send.
type writes string

const (
	nothing  writes = "nothing"
	dryRuns  writes = "dry runs" // at least one
	anything writes = "anything"
)

// TestCommands runs every command that needs a cluster. A second apply writes nothing, and a release restores the
// former values.
func TestCommands(t *testing.T) {
	c := newCluster(t)
	_, before := c.router()
	const ic = "ingresscontroller.operator.openshift.io/default"
	const router = `"replicas":1|node-role.kubernetes.io/master`
	for _, step := range []struct {
		call
		sends writes
		// router is in the IngressController afterwards.
		router string
	}{
		{call{"topology -o jsonpath={.highAvailabilityMode}-{.platform}", 0, "=None-None", ""}, nothing, ""},
		{call{"status -o jsonpath={.modules[*].state}", 0, "WouldChange NotNeeded InForce Blocked ", ""}, nothing, ""},
		{call{"plan --modules ingress -o name", 0, "=" + ic + "\n", ""}, nothing, ""},
		{call{"diff --modules ingress,console", 1,
			"--- live/" + ic + "|+++ merged/" + ic + "|-  replicas: 2|+  replicas: 1|+    name: downloads|!managedFields", ""}, dryRuns, ""},
		{call{"apply --modules ingress --dry-run=client", 0, "applied (client dry run)", ""}, nothing, ""},
		{call{"apply --modules ingress --dry-run=server", 0, "applied (server dry run)", ""}, dryRuns, ""},
		{call{"apply --modules ingress", 0, ic + "   applied", ""}, anything, router},
		{call{"apply --modules ingress -o name", 0, "", ""}, nothing, router},
		{call{"plan --modules ingress", 0, "in force|! set ", ""}, nothing, ""},
		{call{"plan", 0, "FIELD", ""}, nothing, ""},
		{call{"diff --modules ingress", 0, "", ""}, anything, ""},
		{call{"release ingress --dry-run=client", 0, "released (client dry run)", ""}, nothing, router},
		{call{"release ingress", 0, "released", patch.OptOutAnnotation}, anything, `"replicas":2`},
		{call{"release ingress", 0, "unchanged", patch.OptOutAnnotation}, nothing, ""},
		{call{"wait-for-stable --for=1s --timeout=2s", 1, "WAITS FOR|openshift-console/console|Node |there is none yet",
			"error: the cluster is not stable after 2s|Waiting: "}, nothing, ""},
		{call{"wait-for-stable --for=0 --timeout=1ms -o json", 1,
			`"unstable": [|"object": "Deployment openshift-console/console"|"waitsFor": "there is none yet"|"since": "2`, "not stable"}, nothing, ""},
	} {
		sent := c.server.WritesDuring(t, user, func() { step.test(t, "--kubeconfig", c.kubeconfig) })
		for _, write := range sent {
			if step.sends == nothing || step.sends == dryRuns && !strings.Contains(write.URI, "dryRun=All") {
				t.Errorf("%s sends %s", step.args, write)
			}
		}
		if step.sends == dryRuns && len(sent) == 0 {
			t.Errorf("%s sends no dry run", step.args)
		}
		if step.router != "" {
			_, spec := c.router()
			contains(t, step.args, spec, step.router)
		}
	}
	now, spec := c.router()
	if diff := cmp.Diff(before, spec); diff != "" || len(now.GetAnnotations()) > 0 || c.owned("") {
		t.Errorf("left behind: %v, owner %t (-before +after):\n%s", now.GetAnnotations(), c.owned(""), diff)
	}
}

// Values of another manager stay unless conflicts are forced, and are restored on release.
func TestForceConflicts(t *testing.T) {
	c := newCluster(t)
	scaled, _ := c.router()
	c.must(unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas"))
	c.must(c.admin.Update(t.Context(), scaled, client.FieldOwner("kubectl-edit")))
	_, before := c.router()
	for _, step := range []struct{ args, out, router string }{
		{"plan --modules ingress", "kubectl-edit   blocked", "=" + before},
		{"apply --modules ingress", "Blocked", `"replicas":3`},
		{"apply --modules ingress --force-conflicts", "applied", `"replicas":1`},
		{"release ingress", "released", "=" + before},
	} {
		c.call(step.args, step.out)
		_, spec := c.router()
		contains(t, "the router after "+step.args, spec, step.router)
	}
}

// Read permissions suffice for a plan. Missing permissions are reported.
func TestPermissions(t *testing.T) {
	c := newCluster(t)
	c.server.Grant(t, "reader", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	reader, nobody := " --kubeconfig "+c.server.Kubeconfig(t, "reader"), " --kubeconfig "+c.server.Kubeconfig(t, "nobody")
	const patching = "Not permitted to patch ingresscontrollers.operator.openshift.io"
	for _, c := range []call{
		{"plan" + reader, 0, " set ", ""},
		{"diff --modules ingress" + reader, 2, "", patching},
		{"apply --modules ingress" + reader, 1, "Failed", patching},
		{"plan --modules ingress" + nobody, 1, "", `cannot get resource "infrastructures" in API group "config.openshift.io"`},
	} {
		c.test(t)
	}
	if router, _ := c.router(); len(router.GetAnnotations()) > 0 {
		t.Error("something was written")
	}
}

// The command run ends on Ctrl-C. A release also removes the conditions of its controllers.
func TestRun(t *testing.T) {
	c := newCluster(t)
	p := apiserver.StartProgram(t, "run", "--kubeconfig", c.kubeconfig, "--leader-elect-resource-namespace=sno-system")
	p.Ready()
	apiserver.Eventually(t, "ingress and console are patched, and conditions reported", func() error {
		got := run(t, "plan", "-o", "name", "--modules", "ingress,console", "--kubeconfig", c.kubeconfig)
		if got != (output{}) || !c.owned("status") {
			return fmt.Errorf("conditions %t: %v", c.owned("status"), got)
		}
		return nil
	})
	p.Stop()
	c.call("release ingress", "released")
	if c.owned("status") {
		t.Error("the conditions stay")
	}
	screen, code := inTerminal(t, "Patch changed state", "run", "--modules", "ingress", "--kubeconfig", c.kubeconfig,
		"--leader-elect-resource-namespace=sno-system", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if code != 0 {
		t.Errorf("after Ctrl-C it ends with %d:\n%s", code, screen)
	}
}

// The leader-election durations follow the topology, in the same process with the same arguments.
func TestRunStartsAgain(t *testing.T) {
	c := newCluster(t)
	p := apiserver.StartProgram(t, "run", "--modules=ingress", "--kubeconfig", c.kubeconfig, "--leader-elect-resource-namespace=sno-system")
	leads := func(seconds int32) func() error {
		return func() error {
			lease := &coordinationv1.Lease{}
			err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "sno-system", Name: "kubectl-sno.sno.solonode.github.io"}, lease)
			if got := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); err == nil && (got != seconds || ptr.Deref(lease.Spec.HolderIdentity, "") == "") {
				err = fmt.Errorf("%q leads for %d s", ptr.Deref(lease.Spec.HolderIdentity, ""), got)
			}
			return err
		}
	}
	apiserver.Eventually(t, "it leads with the durations of one node", leads(270))
	c.setTopology(configv1.HighlyAvailableTopologyMode)
	p.WaitForLog(`"Starting again" cause="the process has to start again: leader election follows the topology HighlyAvailable"`)
	apiserver.Eventually(t, "it leads with the durations of three nodes", leads(137))
	if ended, err := p.Ended(); ended {
		t.Errorf("the process ended: %v", err)
	}
}

// A rehearsal has the results of the API server, with the owners of fields.
func TestRehearsalIsTrue(t *testing.T) {
	c := newCluster(t)
	userClient := c.server.Client(t, user, "system:masters")
	for _, step := range []struct {
		module  controller.Module
		options plan.Options
		args    string
	}{
		{&ingresscontroller.Module{}, plan.Options{}, "apply --modules ingress"},
		{&consolecontroller.Module{}, plan.Options{ForceConflicts: true}, "apply --modules console --force-conflicts"},
		{&consolecontroller.Module{}, plan.Options{Release: true}, "release console"},
		{&ingresscontroller.Module{}, plan.Options{Release: true}, "release ingress"},
	} {
		planned, err := plan.Compute(t.Context(), userClient, step.module, step.options)
		c.must(err)
		step.options.Server = userClient
		withServer, err := plan.Compute(t.Context(), userClient, step.module, step.options)
		c.must(err)
		c.call(step.args, "OUTCOME")
		if len(planned.Writes) == 0 || len(planned.Writes) != len(withServer.Writes) {
			t.Fatalf("%s: %d writes, %d as dry runs", step.args, len(planned.Writes), len(withServer.Writes))
		}
		for i, w := range planned.Writes {
			is := &unstructured.Unstructured{}
			is.SetGroupVersionKind(w.GroupVersionKind)
			c.must(userClient.Get(t.Context(), w.ObjectKey, is))
			for name, rehearsed := range map[string]rehearsal.Write{"memory": w, "dry run": withServer.Writes[i]} {
				if diff := cmp.Diff(normal(is), normal(rehearsed.After)); diff != "" {
					t.Errorf("%s: %s (-API server +%s):\n%s", step.args, plan.NameOf(w.After), name, diff)
				}
			}
		}
	}
}

// normal removes versions and times, and replaces managedFields by the owners.
func normal(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	owners := map[string]any{}
	for _, entry := range u.GetManagedFields() {
		owners[entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource] = string(entry.FieldsV1.Raw)
	}
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.Object["owners"] = owners
	return u.Object
}

// meanwhile changes the IngressController after it was read, as its operator does.
type meanwhile struct {
	client.Client
	left   int
	change func()
}

func (m *meanwhile) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := m.Client.Get(ctx, key, object, opts...)
	if key.Name == ingress.IngressControllerName && m.left > 0 {
		m.left--
		m.change()
	}
	return err
}

// A change between a read and a write is not the result of a command: it reads again.
func TestChangesMeanwhile(t *testing.T) {
	c := newCluster(t)
	admin := c.server.Client(t, user, "system:masters")
	changes := 0
	busy := func() *meanwhile {
		return &meanwhile{Client: admin, left: 3, change: func() {
			changes++
			router, _ := c.router()
			status := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, changes)
			c.must(c.admin.Status().Patch(t.Context(), router, client.RawPatch(types.MergePatchType, []byte(status))))
		}}
	}
	module := &ingresscontroller.Module{}
	for _, release := range []bool{false, true} {
		for _, server := range []client.Client{nil, admin} {
			planned, err := plan.Compute(t.Context(), busy(), module, plan.Options{Release: release, Server: server})
			c.must(err)
			if len(planned.Writes) != 1 || !release && planned.State != patch.WouldChange.String() {
				t.Errorf("plan, release %t, dry run %t: %d writes, %s %s: %s", release, server != nil, len(planned.Writes), planned.State, planned.Reason, planned.Message)
			}
		}
		out, err := plan.Reconcile(t.Context(), busy(), module, controller.Options{}, release)
		c.must(err)
		if len(out.Writes) == 0 {
			t.Errorf("release %t: %d writes, %+v", release, len(out.Writes), out.Result)
		}
	}
	if changes < 4 {
		t.Errorf("%d changes", changes)
	}
}
