// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/cli/operatorcondition"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.Infrastructures, crds.ClusterVersions}})

func TestMain(m *testing.M) {
	apiserver.MaybeRunProgram(func(args []string) int {
		return cli.Main(args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	})
	os.Exit(shared.Main(m))
}

const (
	name = "sno.v0.1.0"
	user = "operator"
)

// version has an entry of a person, and claimed one of a module, which that module would apply.
const version = `{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {
	"clusterID": "11111111-2222-3333-4444-555555555555",
	"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "a", "name": %q, "unmanaged": true}]}}`

const claimed = `{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {
	"overrides": [%s]}}`

const entry = `{"kind": "Deployment", "group": "apps", "namespace": "openshift-cluster-machine-approver", "name": "machine-approver", "unmanaged": true}`

func object(t *testing.T, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	apiserver.NoError(t, u.UnmarshalJSON(fmt.Appendf(nil, text, args...)))
	return u
}

type cluster struct {
	*testing.T
	server    *apiserver.Server
	admin     client.WithWatch
	namespace string
	condition controller.Object
}

// newCluster grants the rights that OLM grants, and of config/all only reads.
func newCluster(t *testing.T, server *apiserver.Server) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t), namespace: server.Namespace(t)}
	c.condition = modules.Object("operators.coreos.com/v2", "OperatorCondition", c.namespace, name)
	rule := func(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	reads := []string{"get", "list", "watch"}
	server.Grant(t, user, rule("config.openshift.io", "infrastructures", "", reads...), rule("config.openshift.io", "clusterversions", "", reads...),
		rule("apps", "deployments", "", reads...), rule("policy", "poddisruptionbudgets", "", reads...),
		rule("operators.coreos.com", "operatorconditions", name, "get", "update", "patch"))
	return c
}

func (c *cluster) start(args ...string) *apiserver.Process {
	c.Helper()
	return apiserver.StartProgram(c.T, append([]string{"run", "--modules=console", "--kubeconfig=" + c.server.Kubeconfig(c, user), "--leader-elect=false",
		"--leader-elect-resource-namespace=" + c.namespace}, args...)...)
}

func (c *cluster) apply(manager, text string, args ...any) {
	c.Helper()
	err := c.admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(object(c.T, text, args...)), client.FieldOwner(manager))
	apiserver.NoError(c, err)
}

func (c *cluster) conditions() (conditions []metav1.Condition, managers string) {
	c.Helper()
	live := c.condition.Unstructured()
	apiserver.NoError(c, c.admin.Get(c.Context(), c.condition.Key(), live))
	var has struct {
		Spec struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"spec"`
	}
	apiserver.NoError(c, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &has))
	for _, m := range live.GetManagedFields() {
		managers += m.Manager + " "
	}
	return has.Spec.Conditions, managers
}

func (c *cluster) waitFor(status metav1.ConditionStatus, reason string) (found metav1.Condition) {
	c.Helper()
	apiserver.Eventually(c, "the condition is "+string(status), func() error {
		conditions, _ := c.conditions()
		for _, condition := range conditions {
			if condition.Type == "Upgradeable" && condition.Status == status && condition.Reason == reason {
				found = condition
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", conditions)
	})
	return found
}

func (c *cluster) installCRD() {
	c.Helper()
	for _, u := range apiserver.Manifests(c, "testdata/module/operatorcondition/testdata", "operators.coreos.com_operatorconditions.yaml") {
		c.server.Put(c, u)
	}
	apiserver.Eventually(c, "OperatorConditions are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(c.condition.GroupVersionKind)
		return c.admin.List(c.Context(), list)
	})
}

func TestOperatorCondition(t *testing.T) {
	t.Setenv(operatorcondition.NameVariable, name)
	c := newCluster(t, shared.Server(t))
	c.apply("installer", version, "b")
	c.installCRD()
	apiserver.NoError(t, c.admin.Create(t.Context(), c.condition.Unstructured()))

	p := c.start()
	first := c.waitFor(metav1.ConditionTrue, "AsExpected")
	if _, managers := c.conditions(); !strings.Contains(managers, "sno.solonode.github.io/operatorcondition ") {
		t.Errorf("the managers are %q", managers)
	}

	// Changes of the ClusterVersion that do not matter write nothing; the next write shows that they were observed.
	c.server.NoWrites(t, user, func() {
		c.apply("installer", version, "c")
		before := &configv1.ClusterVersion{}
		apiserver.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Name: "version"}, before))
		before.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, StartedTime: metav1.Now(), CompletionTime: ptr(metav1.Now())}}
		before.Status.VersionHash, before.Status.Desired = "x", configv1.Release{Version: "4.20.0", Image: "i"}
		apiserver.NoError(t, c.admin.Status().Update(t.Context(), before))
	})
	writes := c.server.WritesDuring(t, user, func() {
		c.apply(patch.FieldOwner("approver"), claimed, entry)
		blocked := c.waitFor(metav1.ConditionFalse, "OverrideClaimed")
		for _, part := range []string{"Deployment openshift-cluster-machine-approver/machine-approver (module approver)", "docs/undo.md#before-an-upgrade"} {
			if !strings.Contains(blocked.Message, part) {
				t.Errorf("the message %q lacks %q", blocked.Message, part)
			}
		}
	})
	if len(writes) != 1 || writes[0].Verb != "patch" || !strings.Contains(writes[0].URI, "/operatorconditions/"+name) {
		t.Errorf("writes %v, want one of the OperatorCondition", writes)
	}

	// A condition of another client stays.
	live := c.condition.Unstructured()
	apiserver.NoError(t, c.admin.Get(t.Context(), c.condition.Key(), live))
	conditions, _, err := unstructured.NestedSlice(live.Object, "spec", "conditions")
	apiserver.NoError(t, err)
	conditions = append(conditions, map[string]any{
		"type": "Other", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	})
	apiserver.NoError(t, unstructured.SetNestedSlice(live.Object, conditions, "spec", "conditions"))
	apiserver.NoError(t, c.admin.Update(t.Context(), live))

	c.apply(patch.FieldOwner("approver"), claimed, "")
	again := c.waitFor(metav1.ConditionTrue, "AsExpected")
	if again.LastTransitionTime.Before(&first.LastTransitionTime) {
		t.Errorf("the transition time went from %s to %s", first.LastTransitionTime, again.LastTransitionTime)
	}
	if conditions, _ := c.conditions(); len(conditions) != 2 {
		t.Errorf("conditions %+v, want that of another client too", conditions)
	}
	p.Stop()

	// The next process finds the condition and writes nothing.
	c.server.NoWrites(t, user, func() {
		p := c.start()
		apiserver.Eventually(t, "it reconciles", func() error {
			if !strings.Contains(p.Logs(), `"Starting workers" controller="operatorcondition"`) {
				return errors.New("not yet")
			}
			return nil
		})
		p.Stop()
	})
	if text := p.Logs(); strings.Contains(text, "is forbidden") {
		t.Errorf("a request is forbidden:\n%s", text)
	}
}

func TestWithoutOLM(t *testing.T) {
	c := newCluster(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures, crds.ClusterVersions}}))
	c.apply("installer", version, "b")

	// Without the variable there is no controller.
	t.Setenv(operatorcondition.NameVariable, "")
	p := c.start()
	p.WaitForLog(`"Starting workers" controller="console"`)
	p.Stop()
	if strings.Contains(p.Logs(), "operatorcondition") || strings.Contains(p.Logs(), "OperatorCondition") {
		t.Errorf("there is a controller without %s:\n%s", operatorcondition.NameVariable, p.Logs())
	}

	// The kind is not served: the process runs, and reports that once.
	t.Setenv(operatorcondition.NameVariable, name)
	p = c.start()
	p.WaitForLog("OperatorCondition does not exist")
	if code, body, err := p.Probe("/readyz"); err != nil || code != 200 {
		t.Errorf("it is not ready: %d %s %v", code, body, err)
	}
	p.Stop()
	if strings.Contains(p.Logs(), "Reconciler error") {
		t.Errorf("a missing kind is an error:\n%s", p.Logs())
	}

	// A dry run writes nothing.
	c.installCRD()
	apiserver.NoError(t, c.admin.Create(t.Context(), c.condition.Unstructured()))
	c.server.NoWrites(t, user, func() {
		p := c.start("--dry-run")
		p.WaitForLog("Would report whether OLM may replace this version")
		p.Stop()
	})
}

func TestFromEnvironment(t *testing.T) {
	t.Setenv(operatorcondition.NameVariable, "")
	if m, err := operatorcondition.FromEnvironment("n"); m != nil || err != nil {
		t.Errorf("%v, %v; want no controller", m, err)
	}
	t.Setenv(operatorcondition.NameVariable, name)
	m, err := operatorcondition.FromEnvironment("n")
	apiserver.NoError(t, err)
	if want := modules.Object("operators.coreos.com/v2", "OperatorCondition", "n", name); m.Object != want {
		t.Errorf("the object is %v, want %v", m.Object, want)
	}
	if m, err := operatorcondition.FromEnvironment(""); !errors.Is(err, operatorcondition.ErrNamespace) {
		t.Errorf("%v, %v outside of a pod, want %v", m, err, operatorcondition.ErrNamespace)
	}
}

func ptr[T any](v T) *T { return &v }
