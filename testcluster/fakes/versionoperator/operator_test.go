// SPDX-License-Identifier: Apache-2.0

package versionoperator

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/eventually"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	timeout = time.Minute
	quiet   = 3 * time.Second
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestEnforce(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   bool
	}{
		{"as in the manifest", func(*appsv1.Deployment) {}, false},
		{"fewer pods", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }, true},
		{"no anti-affinity", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Affinity = nil }, true},
		{"pinned", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector[scenario.MasterTaint] = "" }, true},
		{"another toleration", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "more"})
		}, true},
		{"another image", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, true},
		{"without its container", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }, true},
		{"a strategy", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType }, false},
		{"a restart", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"restarted": "now"} }, false},
		{"defaults of the API server", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].ImagePullPolicy, d.Spec.Template.Spec.DNSPolicy = corev1.PullAlways, corev1.DNSClusterFirst
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := downloads()
			test.change(live)
			if got := enforceDownloads(live); got != test.want {
				t.Errorf("a difference: %v, want %v", got, test.want)
			}
			if enforceDownloads(live) {
				t.Error("a second call still reports a difference")
			}
		})
	}
}

// TestOperator checks in sequence, on one cluster, what the console module relies on.
func TestEnforceBudget(t *testing.T) {
	for name, change := range map[string]func(*policyv1.PodDisruptionBudgetSpec){
		"as in the manifest": nil,
		"another number":     func(s *policyv1.PodDisruptionBudgetSpec) { s.MaxUnavailable = ptr.To(intstr.FromInt32(2)) },
		"a field that the manifest does not have": func(s *policyv1.PodDisruptionBudgetSpec) {
			s.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
		},
	} {
		live := guardBudget()
		if change != nil {
			change(&live.Spec)
		}
		if got := GuardBudget.enforce(live); got != (change != nil) || !equality.Semantic.DeepEqual(live, guardBudget()) {
			t.Errorf("%s: changed %t, %+v", name, got, live.Spec)
		}
	}
}

func TestOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*timeout)
	defer cancel()
	c, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		t.Fatalf("this test needs a real API server: %v", err)
	}
	defer func() { _ = c.Stop() }()
	s, err := scenario.Lookup("none-sno")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(ctx, c); err != nil {
		t.Fatal(err)
	}
	restConfig, err := c.ConfigForAdministrator(User)
	if err != nil {
		t.Fatal(err)
	}
	operatorCtx, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- Run(operatorCtx, restConfig, Downloads) }()
	on := onCluster{t, c}

	on.downloads("comes from the manifest", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 2 && len(d.ManagedFields) > 0 && d.ManagedFields[0].Manager == "cluster-version-operator"
	})
	on.patch(&appsv1.Deployment{}, `{"spec":{"replicas":1}}`)
	on.downloads("matches the manifest again", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 && d.Generation == 3 })
	on.patch(&appsv1.Deployment{}, `{"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}}`)
	on.stopsWriting("after a restart of the pods, which the manifest does not mention")
	on.downloads("keeps the restart", func(d *appsv1.Deployment) bool {
		return d.Generation == 4 && d.Spec.Template.Annotations["restarted"] == "now"
	})

	on.patch(&configv1.ClusterVersion{}, `{"spec":{"overrides":[
		{"kind":"Deployment","group":"apps","namespace":"openshift-console","name":"downloads","unmanaged":true},
		{"kind":"Deployment","group":"apps","namespace":"openshift-else","name":"else","unmanaged":false}]}}`)
	on.version("an override is observed", func(v *configv1.ClusterVersion) bool { return observed(v) && upgradeable(v) == configv1.ConditionFalse })
	before := on.offset()
	on.patch(&appsv1.Deployment{}, `{"spec":{"replicas":1}}`)
	on.patch(&configv1.ClusterVersion{}, `{"spec":{"channel":"fast-4.21"}}`)
	on.version("the stand-in has reconciled again", observed)
	on.wroteNothing("while the override exists", "deployments", before)
	if err := c.Client().Delete(ctx, downloads()); err != nil {
		t.Fatal(err)
	}
	on.patch(&configv1.ClusterVersion{}, `{"spec":{"channel":"stable-4.21"}}`)
	on.version("the stand-in has reconciled again", observed)
	on.wroteNothing("after downloads was deleted while the override exists", "deployments", before)

	on.patch(&configv1.ClusterVersion{}, `{"spec":{"overrides":null}}`)
	on.version("nothing is overridden any more", func(v *configv1.ClusterVersion) bool { return observed(v) && upgradeable(v) == "" })
	on.downloads("is back", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	on.stopsWriting("in the end")
	end()
	if err := <-ended; err != nil {
		t.Errorf("the stand-in ended with %v", err)
	}
}

type onCluster struct {
	t *testing.T
	*embedded.Cluster
}

func observed(v *configv1.ClusterVersion) bool { return v.Status.ObservedGeneration == v.Generation }

func upgradeable(v *configv1.ClusterVersion) configv1.ConditionStatus {
	for _, condition := range v.Status.Conditions {
		if condition.Type == configv1.OperatorUpgradeable {
			return condition.Status
		}
	}
	return ""
}

func (c onCluster) patch(object client.Object, body string) {
	c.t.Helper()
	object.SetName(versionKey.Name)
	if _, ok := object.(*appsv1.Deployment); ok {
		object.SetName(downloadsKey.Name)
		object.SetNamespace(downloadsKey.Namespace)
	}
	if err := c.Client().Patch(c.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner("another-client")); err != nil {
		c.t.Fatal(err)
	}
}

func (c onCluster) downloads(what string, is func(*appsv1.Deployment) bool) {
	c.t.Helper()
	becomes(c, "downloads "+what, downloadsKey, &appsv1.Deployment{}, is)
}

func (c onCluster) version(what string, is func(*configv1.ClusterVersion) bool) {
	c.t.Helper()
	becomes(c, what, versionKey, &configv1.ClusterVersion{}, is)
}

func becomes[T client.Object](c onCluster, what string, key client.ObjectKey, live T, is func(T) bool) {
	c.t.Helper()
	eventually.Succeeds(c.t, what, func() error {
		if err := c.Client().Get(c.t.Context(), key, live); err != nil {
			return err
		}
		if !is(live) {
			return fmt.Errorf("it is %+v", live)
		}
		return nil
	})
}

func (c onCluster) offset() int64 {
	c.t.Helper()
	offset, err := c.AuditOffset(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return offset
}

// stopsWriting waits for a period without a write. A write that is refused because the cache is stale counts as one
// and is repeated once, so the first period after a change may have some.
func (c onCluster) stopsWriting(when string) {
	c.t.Helper()
	var wrote []string
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		offset := c.offset()
		select {
		case <-time.After(quiet):
		case <-c.t.Context().Done():
		}
		if wrote = c.writes("", offset); len(wrote) == 0 {
			return
		}
	}
	c.t.Fatalf("%s it keeps writing: %v", when, wrote)
}

func (c onCluster) wroteNothing(when, resource string, offset int64) {
	c.t.Helper()
	if wrote := c.writes(resource, offset); len(wrote) > 0 {
		c.t.Errorf("%s it wrote: %v", when, wrote)
	}
}

func (c onCluster) writes(resource string, offset int64) []string {
	c.t.Helper()
	events, _, err := c.AuditEvents(c.t.Context(), offset, embedded.AuditFilter{User: User, Resource: resource, WritesOnly: true})
	if err != nil {
		c.t.Fatal(err)
	}
	var wrote []string
	for _, event := range events {
		wrote = append(wrote, event.Verb+" "+event.RequestURI)
	}
	return wrote
}
