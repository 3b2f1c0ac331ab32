package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// user is who runs the program in the tests of clusters.
const user = "somebody-with-rights"

// cluster is a freshly installed single-node cluster with workers, without operators.
type cluster struct {
	*testing.T
	server     *patchtest.APIServer
	kubeconfig string
}

// manifests are what the installer and the operators made, each by its own field manager.
var manifests = []struct{ manager, text string }{
	{"cluster-bootstrap", `{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, spec: {platformSpec: {type: None}}}`},
	{"cluster-bootstrap", `{apiVersion: config.openshift.io/v1, kind: Ingress, metadata: {name: cluster}, spec: {domain: apps.example.com}}`},
	{"cluster-bootstrap", `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: 00000000-0000-4000-8000-000000000000}}`},
	{"cluster-ingress-operator", `{apiVersion: operator.openshift.io/v1, kind: IngressController,
		metadata: {name: default, namespace: openshift-ingress-operator}, spec: {replicas: 2}}`},
	{"console-operator", deployment("openshift-console", "console")},
	{"cluster-version-operator", deployment("openshift-console", "downloads")},
}

func deployment(namespace, name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[2]s, namespace: %[1]s}, spec: {replicas: 2,
		selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: main, image: main}]}}}}`, namespace, name)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, server: shared.Server(t)}
	admin := c.server.Admin(t)
	for _, name := range []string{"openshift-ingress-operator", "openshift-ingress", "openshift-console", "sno-system"} {
		err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, m := range manifests {
			if err := admin.Delete(context.WithoutCancel(t.Context()), read(t, m.text)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	for _, m := range manifests {
		object := read(t, m.text)
		if err := admin.Create(t.Context(), object, client.FieldOwner(m.manager)); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "Infrastructure" {
			continue
		}
		infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		status := `{"status":{"controlPlaneTopology":"SingleReplica","infrastructureTopology":"SingleReplica","platform":"None","platformStatus":{"type":"None"}}}`
		if err := admin.Status().Patch(t.Context(), infrastructure, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	c.kubeconfig = c.server.Kubeconfig(t, user, "system:masters")
	return c
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// run runs the program on the cluster.
func (c *cluster) run(args ...string) said {
	c.Helper()
	return run(c.T, append(args, "--kubeconfig", c.kubeconfig)...)
}

// ends runs the program and wants this exit code.
func (c *cluster) ends(code int, args ...string) said {
	c.Helper()
	is := c.run(args...)
	if is.code != code {
		c.Errorf("%v ends with %d, want %d:\n%s%s", args, is.code, code, is.out, is.err)
	}
	return is
}

// router is the default IngressController as it is.
func (c *cluster) router() *unstructured.Unstructured {
	c.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("IngressController"))
	if err := c.server.Admin(c).Get(c.Context(), client.ObjectKey{Namespace: "openshift-ingress-operator", Name: "default"}, u); err != nil {
		c.Fatal(err)
	}
	return u
}

func spec(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What is applied is in force, applying it again writes nothing, and releasing it gives back what was there, byte by byte.
func TestApplyAndRelease(t *testing.T) {
	c := newCluster(t)
	before := spec(t, c.router())
	is := c.ends(0, "apply", "--modules", "ingress")
	if !strings.Contains(is.out, "ingresscontroller.operator.openshift.io/default   applied") || is.err != "" {
		t.Errorf("apply says\n%s%s", is.out, is.err)
	}
	if after := spec(t, c.router()); !strings.Contains(after, `"replicas":1`) || !strings.Contains(after, "node-role.kubernetes.io/master") {
		t.Errorf("applied: %s", after)
	}
	c.server.NoWrites(t, user, func() {
		if is := c.ends(0, "apply", "--modules", "ingress", "-o", "name"); is.out != "" {
			t.Errorf("the second time it says\n%s", is.out)
		}
		c.ends(0, "status")
		c.ends(0, "plan")
	})
	if is := c.ends(0, "plan", "--modules", "ingress"); strings.Contains(is.out, " set ") || !strings.Contains(is.out, "in force") {
		t.Errorf("the plan afterwards\n%s", is.out)
	}
	c.server.NoWrites(t, user, func() { c.ends(0, "release", "ingress", "--dry-run=client") })
	is = c.ends(0, "release", "ingress")
	if !strings.Contains(is.out, "released") || !strings.Contains(is.err, patch.OptOutAnnotation) {
		t.Errorf("release says\n%s%s", is.out, is.err)
	}
	now := c.router()
	if diff := cmp.Diff(before, spec(t, now)); diff != "" {
		t.Errorf("given back (-before +after):\n%s", diff)
	}
	if len(now.GetAnnotations()) > 0 {
		t.Errorf("left behind: %v", now.GetAnnotations())
	}
	for _, entry := range now.GetManagedFields() {
		if entry.Manager == ingress.FieldOwner {
			t.Errorf("still an owner: %s", entry.FieldsV1)
		}
	}
	c.server.NoWrites(t, user, func() { c.ends(0, "release", "ingress") })
}

// diff asks the API server, and writes nothing.
func TestDiff(t *testing.T) {
	c := newCluster(t)
	writes := c.server.WritesDuring(t, user, func() {
		is := c.ends(1, "diff", "--modules", "ingress,console")
		for _, want := range []string{
			"--- live/ingresscontroller.operator.openshift.io/default", "+++ merged/ingresscontroller.operator.openshift.io/default",
			"-  replicas: 2", "+  replicas: 1", "+    name: downloads",
		} {
			if !strings.Contains(is.out, want) {
				t.Errorf("the diff lacks %q:\n%s", want, is.out)
			}
		}
		if strings.Contains(is.out, "managedFields") || is.err != "" {
			t.Errorf("managedFields are shown, or something is said:\n%s%s", is.out, is.err)
		}
	})
	if len(writes) == 0 {
		t.Error("the API server was not asked")
	}
	for _, write := range writes {
		if !strings.Contains(write.URI, "dryRun=All") {
			t.Errorf("written: %s", write)
		}
	}
	c.ends(0, "apply", "--modules", "ingress")
	if is := c.ends(0, "diff", "--modules", "ingress"); is.out != "" {
		t.Errorf("afterwards the diff is\n%s", is.out)
	}
}

func TestDryRun(t *testing.T) {
	c := newCluster(t)
	c.server.NoWrites(t, user, func() {
		if is := c.ends(0, "apply", "--dry-run=client", "--modules", "ingress"); !strings.Contains(is.out, "applied (client dry run)") {
			t.Errorf("it says\n%s", is.out)
		}
	})
	for _, write := range c.server.WritesDuring(t, user, func() {
		if is := c.ends(0, "apply", "--dry-run=server", "--modules", "ingress"); !strings.Contains(is.out, "applied (server dry run)") {
			t.Errorf("it says\n%s", is.out)
		}
	}) {
		if !strings.Contains(write.URI, "dryRun=All") {
			t.Errorf("written: %s", write)
		}
	}
}

// A person's value stays, unless somebody asks for it, and comes back.
func TestForceConflicts(t *testing.T) {
	c := newCluster(t)
	scaled := c.router()
	if err := unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := c.server.Admin(t).Update(t.Context(), scaled, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	before := spec(t, c.router())
	if is := c.ends(0, "plan", "--modules", "ingress"); !strings.Contains(is.out, "kubectl-edit   blocked") {
		t.Errorf("the plan is\n%s", is.out)
	}
	if is := c.ends(0, "apply", "--modules", "ingress"); !strings.Contains(is.out, "Blocked") || !strings.Contains(spec(t, c.router()), `"replicas":3`) {
		t.Errorf("without force\n%s\n%s", is.out, spec(t, c.router()))
	}
	c.ends(0, "apply", "--modules", "ingress", "--force-conflicts")
	if after := spec(t, c.router()); !strings.Contains(after, `"replicas":1`) {
		t.Errorf("with force: %s", after)
	}
	c.ends(0, "release", "ingress")
	if diff := cmp.Diff(before, spec(t, c.router())); diff != "" {
		t.Errorf("given back (-before +after):\n%s", diff)
	}
}

// Who may only read can plan. What is missing for more is named.
func TestRights(t *testing.T) {
	c := newCluster(t)
	all := []string{"*"}
	c.server.Grant(t, "reader", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: all, Resources: all})
	reader := c.server.Kubeconfig(t, "reader")
	if is := run(t, "plan", "--kubeconfig", reader); is.code != 0 || !strings.Contains(is.out, " set ") {
		t.Errorf("the plan of who may read: %d\n%s%s", is.code, is.out, is.err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"diff":  {[]string{"diff", "--modules", "ingress", "--kubeconfig", reader}, 2, "Not permitted to patch ingresscontrollers.operator.openshift.io"},
		"apply": {[]string{"apply", "--modules", "ingress", "--kubeconfig", reader}, 1, "Not permitted to patch ingresscontrollers.operator.openshift.io"},
		"nobody": {[]string{"plan", "--modules", "ingress", "--kubeconfig", c.server.Kubeconfig(t, "nobody")}, 1,
			`cannot get resource "infrastructures" in API group "config.openshift.io"`},
	} {
		is := run(t, test.args...)
		if is.code != test.code || !strings.Contains(is.err, test.err) {
			t.Errorf("%s: %d, want %d and %q; got\n%s%s", name, is.code, test.code, test.err, is.out, is.err)
		}
	}
	if len(c.router().GetAnnotations()) > 0 {
		t.Error("something was written")
	}
}

// A cluster that serves nothing of OpenShift, and none at all.
func TestNoCluster(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["get","list"]}]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer plain.Close()
	for _, args := range [][]string{{"plan"}, {"topology"}, {"apply"}, {"status"}} {
		is := run(t, append(args, "--server", plain.URL)...)
		if is.code != 1 || is.out != "" || !strings.Contains(is.err, "Infrastructure") || !strings.Contains(is.err, "does not look like an OpenShift cluster") {
			t.Errorf("%v without OpenShift: %d\n%s%s", args, is.code, is.out, is.err)
		}
		is = run(t, append(args, "--server", "http://127.0.0.1:1")...)
		if is.code != 1 || is.out != "" || !strings.Contains(is.err, "No cluster answers there") {
			t.Errorf("%v without a cluster: %d\n%s%s", args, is.code, is.out, is.err)
		}
	}
}

// topology and status of a cluster; all verbs that look agree about it.
func TestLooks(t *testing.T) {
	c := newCluster(t)
	c.server.NoWrites(t, user, func() {
		if is := c.ends(0, "topology", "-o", "jsonpath={.highAvailabilityMode} {.platform}"); is.out != "None None" {
			t.Errorf("topology says %q", is.out)
		}
		if is := c.ends(0, "status", "-o", `jsonpath={range .modules[*]}{.module}={.state} {end}`); !strings.HasPrefix(is.out,
			"ingress=WouldChange etcdguard=NotNeeded machineconfig=InForce console=Blocked ") {
			t.Errorf("status says %q", is.out)
		}
		if is := c.ends(0, "plan", "-o", "name", "--modules", "ingress"); is.out != "ingresscontroller.operator.openshift.io/default\n" {
			t.Errorf("plan names %q", is.out)
		}
	})
}

// run is all controllers in one process. What they showed goes with the release too.
func TestRun(t *testing.T) {
	c := newCluster(t)
	p := patchtest.Start(t, "run", "--kubeconfig", c.kubeconfig, "--leader-elect-resource-namespace=sno-system")
	p.Ready()
	patchtest.Eventually(t, "ingress and console are patched", func() error {
		if is := c.run("plan", "-o", "name", "--modules", "ingress,console"); is.out != "" || is.code != 0 {
			return fmt.Errorf("%d: %s%s", is.code, is.out, is.err)
		}
		return nil
	})
	shows := func() (is bool) {
		for _, entry := range c.router().GetManagedFields() {
			is = is || (entry.Manager == ingress.FieldOwner && entry.Subresource == "status")
		}
		return is
	}
	patchtest.Eventually(t, "the controller shows conditions", func() error {
		if !shows() {
			return errors.New("it does not")
		}
		return nil
	})
	p.Stop()
	c.ends(0, "release", "ingress")
	if shows() {
		t.Errorf("conditions stay: %v", c.router().Object["status"])
	}
}
