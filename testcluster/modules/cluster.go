// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/run"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

// SystemNamespace is the namespace of the manifests in a module's config.
const SystemNamespace = "sno-system"

// folder is a symbolic link to the tested module. Go's cache of test results knows files below the folder of a test's
// module only, and follows a link there.
const folder = "testdata/module"

// Suite holds what the tests of a controller share: an API server, and a user with the permissions of config/rbac.
type Suite struct {
	Module  func() controller.Module // with default flags
	Options apiserver.Options
	// ExtraObjects are kinds, with namespaces, that tests create in addition to those of the module.
	ExtraObjects []controller.Object

	shared  *apiserver.Shared
	clients map[*apiserver.Server]suiteClient
}

type suiteClient struct {
	client.WithWatch
	*apiserver.CrashInjector
}

// Test runs the tests, or the program in a process of Start. It returns the exit code.
func (s *Suite) Test(m *testing.M) int {
	apiserver.MaybeRunProgram(func(args []string) int { return run.Main(s.Program(), args, s.Module()) })
	s.shared, s.clients = apiserver.NewShared(s.Options), map[*apiserver.Server]suiteClient{}
	return s.shared.Main(m)
}

// Program returns the name of the program, which is also that of the service account and the roles.
func (s *Suite) Program() string { return s.Module().Name() + "-controller" }

// User returns the user name of the program's service account.
func (s *Suite) User() string { return apiserver.AccountUser(SystemNamespace, s.Program()) }

func (s *Suite) objects() []controller.Object {
	return slices.Concat(s.Module().Objects(), s.ExtraObjects, []controller.Object{
		Object("coordination.k8s.io/v1", "Lease", SystemNamespace, ""), Object("events.k8s.io/v1", "Event", metav1.NamespaceDefault, ""),
	})
}

// Cluster is an API server without controllers: the test acts as all other clients.
type Cluster struct {
	*testing.T
	Suite  *Suite
	Server *apiserver.Server
	Admin  client.WithWatch
}

// Cluster returns the shared API server with the module's namespaces and the program's permissions.
func (s *Suite) Cluster(t *testing.T) *Cluster {
	t.Helper()
	return s.ClusterOn(t, s.shared.Server(t))
}

// ClusterOn is Cluster on another API server.
func (s *Suite) ClusterOn(t *testing.T, server *apiserver.Server) *Cluster {
	t.Helper()
	c := &Cluster{T: t, Suite: s, Server: server, Admin: server.Admin(t)}
	namespaces := []string{SystemNamespace}
	for _, o := range s.objects() {
		namespaces = append(namespaces, o.Namespace)
	}
	slices.Sort(namespaces)
	for _, name := range slices.Compact(namespaces) {
		if name != "" {
			c.NoError(client.IgnoreAlreadyExists(c.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
		}
	}
	c.Permit(s.Program())
	c.limit()
	t.Cleanup(c.Clear)
	return c
}

// Permit grants a service account the permissions of config/rbac and waits until they are effective.
func (c *Cluster) Permit(account string) {
	c.Helper()
	for _, u := range apiserver.Manifests(c, folder+"/config/rbac", "service_account.yaml", "role.yaml", "role_binding.yaml") {
		switch u.GetKind() {
		case "ServiceAccount":
			u.SetName(account)
		case "RoleBinding", "ClusterRoleBinding":
			subject := map[string]any{"kind": "ServiceAccount", "namespace": SystemNamespace, "name": account}
			c.NoError(unstructured.SetNestedSlice(u.Object, []any{subject}, "subjects"))
			u.SetName(account)
		}
		c.Server.Put(c, u)
	}
	c.Eventually("the permissions of "+account+" are effective", func() error {
		if !c.May(account, [6]string{"", "config.openshift.io", "infrastructures", "", "cluster", "get"}) {
			return errors.New("not yet")
		}
		return nil
	})
}

// May reports whether a service account has a right: namespace, group, resource, subresource, name and verb.
func (c *Cluster) May(account string, right [6]string) bool {
	c.Helper()
	return c.Server.May(c, apiserver.AccountUser(SystemNamespace, account), right)
}

// Clear deletes all objects of the module's kinds and of Suite.ExtraObjects.
func (c *Cluster) Clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, o := range c.Suite.objects() {
		u := o.Unstructured()
		u.SetName("")
		err := c.Admin.DeleteAllOf(ctx, u, client.InNamespace(o.Namespace), client.GracePeriodSeconds(0))
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) && !apierrors.IsMethodNotSupported(err) {
			c.Errorf("cleaning up %s: %v", o.Kind, err)
		}
	}
}

// NoError ends the test on an error.
func (c *Cluster) NoError(err error) {
	c.Helper()
	apiserver.NoError(c, err)
}

// Check fails the test for each error.
func (c *Cluster) Check(checks ...func() error) {
	c.Helper()
	for _, check := range checks {
		if err := check(); err != nil {
			c.Error(err)
		}
	}
}

// Eventually waits until the check returns nil.
func (c *Cluster) Eventually(what string, check func() error) {
	c.Helper()
	apiserver.Eventually(c, what, check)
}

// Object returns an object, or, without a name, all of a kind.
func Object(apiVersion, kind, namespace, name string) controller.Object {
	return controller.Object{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind), Namespace: namespace, Name: name}
}

// Create creates objects as the field manager.
func (c *Cluster) Create(manager string, objects ...client.Object) {
	c.Helper()
	for _, o := range objects {
		c.wrote(manager, "creating", o, c.Admin.Create(c.Context(), o, client.FieldOwner(manager)))
	}
}

// Update updates objects as the field manager.
func (c *Cluster) Update(manager string, objects ...client.Object) {
	c.Helper()
	for _, o := range objects {
		c.wrote(manager, "updating", o, c.Admin.Update(c.Context(), o, client.FieldOwner(manager)))
	}
}

// Apply applies objects like `kubectl apply --server-side --force-conflicts`.
func (c *Cluster) Apply(manager string, objects ...*unstructured.Unstructured) {
	c.Helper()
	for _, u := range objects {
		intent := client.ApplyConfigurationFromUnstructured(u)
		c.wrote(manager, "applying", u, c.Admin.Apply(c.Context(), intent, client.FieldOwner(manager), client.ForceOwnership))
	}
}

func (c *Cluster) wrote(manager, how string, o client.Object, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s %s %s: %v", manager, how, o.GetName(), err)
	}
}

// Patch patches like `oc patch --type=merge`. text is a format.
func (c *Cluster) Patch(manager string, o controller.Object, text string, args ...any) {
	c.Helper()
	u := o.Unstructured()
	c.wrote(manager, "patching "+o.Kind, u, c.Admin.Patch(c.Context(), u, merge(text, args), client.FieldOwner(manager)))
}

// PatchStatus patches the status.
func (c *Cluster) PatchStatus(manager string, o controller.Object, text string, args ...any) {
	c.Helper()
	u := o.Unstructured()
	c.wrote(manager, "patching the status of "+o.Kind, u, c.Admin.Status().Patch(c.Context(), u, merge(text, args), client.FieldOwner(manager)))
}

func merge(text string, args []any) client.Patch {
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	return client.RawPatch(types.MergePatchType, []byte(text))
}

// pausePerUpdate is the pause after an update, in multiples of the time that the update took.
const pausePerUpdate = 4

// KeepEditing updates an object repeatedly, with retries after conflicts. The pauses are for the modules, which write
// only the version that they have read: a client that never pauses makes all of their writes stale, and on a busy
// machine a pause of fixed length would be too short. Both functions return the number of updates so far.
func (c *Cluster) KeepEditing(manager string, o controller.Object, change func(u *unstructured.Unstructured, n int)) (updates, stop func() int) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	var wait sync.WaitGroup
	var done atomic.Int64
	var failed error
	updates = func() int { return int(done.Load()) }
	wait.Go(func() {
		for ctx.Err() == nil && failed == nil {
			began := time.Now()
			u := o.Unstructured()
			err := c.Admin.Get(context.WithoutCancel(ctx), o.Key(), u)
			if err == nil {
				change(u, updates())
				err = c.Admin.Update(context.WithoutCancel(ctx), u, client.FieldOwner(manager))
			}
			if err == nil {
				done.Add(1)
			} else if !apierrors.IsConflict(err) {
				failed = err
			}
			select {
			case <-ctx.Done():
			case <-time.After(pausePerUpdate * time.Since(began)):
			}
		}
	})
	return updates, func() int {
		c.Helper()
		cancel()
		wait.Wait()
		c.NoError(failed)
		return updates()
	}
}

// Delete deletes existing objects.
func (c *Cluster) Delete(objects ...controller.Object) {
	c.Helper()
	for _, o := range objects {
		c.NoError(c.Admin.Delete(c.Context(), o.Unstructured(), client.GracePeriodSeconds(0)))
	}
}

// Find reads an object; nil if there is none.
func Find[T any](c *Cluster, o controller.Object) *T {
	c.Helper()
	_, typed, err := controller.Read[T](c.Context(), c.Admin, o)
	c.NoError(err)
	return typed
}

// Get reads an existing object.
func Get[T any](c *Cluster, o controller.Object) *T {
	c.Helper()
	typed := Find[T](c, o)
	if typed == nil {
		c.Fatalf("there is no %s %s", o.Kind, o.Key())
	}
	return typed
}

// SetTopology sets the topology. The first call creates the Infrastructure.
func (c *Cluster) SetTopology(controlPlane, infrastructure configv1.TopologyMode) {
	c.Helper()
	err := c.Admin.Create(c.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: controller.Infrastructure.Name}})
	c.NoError(client.IgnoreAlreadyExists(err))
	text := merge(`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`,
		[]any{controlPlane, infrastructure})
	// The API server does not accept a mode of AllowTopologies at once.
	c.Eventually(fmt.Sprintf("the topology %s is accepted", controlPlane), func() error {
		return c.Admin.Status().Patch(c.Context(), controller.Infrastructure.Unstructured(), text, client.FieldOwner("installer"))
	})
}

// AllowTopologies adds topologies to the CRD, of which that of the oldest supported OpenShift has fewer.
func (c *Cluster) AllowTopologies(modes ...configv1.TopologyMode) {
	c.Helper()
	crd := Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", crds.Infrastructures).Unstructured()
	c.NoError(c.Admin.Get(c.Context(), client.ObjectKeyFromObject(crd), crd))
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	c.NoError(err)
	for _, version := range versions {
		enum := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "controlPlaneTopology", "enum"}
		known, found, err := unstructured.NestedStringSlice(version.(map[string]any), enum...)
		if err != nil || !found {
			c.Fatalf("the CRD %s has no list of topologies: %v", crd.GetName(), err)
		}
		for _, mode := range modes {
			if !slices.Contains(known, string(mode)) {
				known = append(known, string(mode))
			}
		}
		c.NoError(unstructured.SetNestedStringSlice(version.(map[string]any), known, enum...))
	}
	c.NoError(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	c.NoError(c.Admin.Update(c.Context(), crd))
}

// InstallCRDs installs more CRDs of OpenShift.
func (c *Cluster) InstallCRDs(names ...string) {
	c.Helper()
	c.Server.InstallCRDs(c, names...)
}

// CompleteRollouts makes all replicas of existing Deployments available, as their controller does.
func (c *Cluster) CompleteRollouts(deployments ...controller.Object) {
	c.Helper()
	for _, o := range deployments {
		d := Find[appsv1.Deployment](c, o)
		if d == nil || d.Status.ObservedGeneration == d.Generation {
			continue
		}
		c.PatchStatus("kube-controller-manager", o, `{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,
			"readyReplicas":%[2]d,"availableReplicas":%[2]d,"unavailableReplicas":0}}`, d.Generation, *d.Spec.Replicas)
	}
}

// Condition reads a condition of an object; nil if there is none.
func (c *Cluster) Condition(o controller.Object, condition string) *metav1.Condition {
	c.Helper()
	type conditions struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	return meta.FindStatusCondition(Get[conditions](c, o).Status.Conditions, condition)
}

// HasCondition returns a check that an object has a condition with the texts in its message.
func (c *Cluster) HasCondition(o controller.Object, condition string, status metav1.ConditionStatus, reason string, texts ...string) func() error {
	return func() error {
		c.Helper()
		got := c.Condition(o, condition)
		if got == nil {
			return fmt.Errorf("%s %s has no condition %s", o.Kind, o.Key(), condition)
		}
		lacks := func(text string) bool { return !strings.Contains(got.Message, text) }
		if got.Status != status || got.Reason != reason || slices.ContainsFunc(texts, lacks) {
			return fmt.Errorf("%s is %s (%s): %s; want %s (%s) with %q", condition, got.Status, got.Reason, got.Message, status, reason, texts)
		}
		return nil
	}
}

// Events counts the events of the module by type and reason, such as "Normal AsExpected".
func (c *Cluster) Events(namespace string) map[string]int {
	c.Helper()
	list := &eventsv1.EventList{}
	c.NoError(c.Admin.List(c.Context(), list, client.InNamespace(namespace)))
	counts := map[string]int{}
	for _, e := range list.Items {
		if e.ReportingController != "sno-"+c.Suite.Module().Name() {
			continue // of the API server
		}
		counts[e.Type+" "+e.Reason]++
		if e.Series != nil {
			counts[e.Type+" "+e.Reason] += int(e.Series.Count) - 1
		}
	}
	return counts
}

// Untouched returns an error if the module owns fields of existing objects, or if they have its annotations.
func (c *Cluster) Untouched(objects ...controller.Object) error {
	c.Helper()
	owner := patch.FieldOwner(c.Suite.Module().Name())
	for _, o := range objects {
		live := o.Unstructured()
		if err := c.Admin.Get(c.Context(), o.Key(), live); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		own, err := ownership.Applied(live, owner, "")
		if err != nil {
			return err
		}
		if !own.Empty() {
			return fmt.Errorf("the module still owns of %s %s: %s", o.Kind, o.Key(), own)
		}
		for name := range live.GetAnnotations() {
			if strings.HasPrefix(name, patch.Domain+"/") && name != patch.OptOutAnnotation {
				return fmt.Errorf("%s %s still has the annotation %s", o.Kind, o.Key(), name)
			}
		}
	}
	return nil
}

func (c *Cluster) config() *rest.Config {
	return c.Server.Config(c, c.Suite.User(), "system:serviceaccounts", "system:authenticated")
}
