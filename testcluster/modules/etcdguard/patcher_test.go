// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/modules"
)

func budgetOf(name string, maxUnavailable int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(maxUnavailable))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": guardName}}
	return b
}

func TestAllActions(t *testing.T) {
	c := install(t, ha, 3)
	l := c.reconciler()
	var all []string
	for _, stage := range []struct {
		mode                     configv1.TopologyMode
		n                        int
		actions, reason          string
		replicas, maxUnavailable int
		owned                    bool
	}{
		{ha, 3, "", "NotNeeded", 3, 1, false},
		{ha, 5, "Claim ApplyDeployment ApplyBudget", "AsExpected", 5, 2, true},
		{ha, 4, "ApplyBudget ApplyDeployment", "AsExpected", 4, 1, true},
		{arbiter, 3, "ApplyDeployment", "AsExpected", 3, 1, true},
		{ha, 3, "ApplyDeployment DisownDeployment DisownBudget Unclaim", "NotNeeded", 3, 1, false},
		{sr, 1, "Claim DeleteBudget DeleteDeployment", "AsExpected", 0, 0, true},
		{dual, 2, "ApplyBudget ApplyDeployment", "AsExpected", 2, 1, true},
		{ha, 3, "ApplyDeployment DisownDeployment DisownBudget Unclaim", "NotNeeded", 3, 1, false},
		{external, 0, "", "NotNeeded", 3, 1, false},
	} {
		t.Logf("%s with %d", stage.mode, stage.n)
		c.change(stage.mode, stage.n)
		l.wantSettled(stage.reason, stage.replicas, stage.maxUnavailable, stage.owned)
		all = append(all, strings.Fields(stage.actions)...)
		l.wantActions(stage.actions)
		l.CheckNoWrites()
		if stage.replicas == 0 || !stage.owned {
			continue
		}
		pod := c.deployment().Spec.Template.Spec
		if guard := pod.Containers[0]; len(pod.Containers) != 1 || *guard.SecurityContext.Privileged || guard.ReadinessProbe.Exec.Command[0] != "curl" {
			t.Errorf("%s with %d: the guard is %+v", stage.mode, stage.n, guard)
		}
		if byArbiter := len(pod.NodeSelector) == 0 && pod.Affinity.NodeAffinity != nil; byArbiter != (stage.mode == arbiter) {
			t.Errorf("%s with %d: selector %v, affinity %v", stage.mode, stage.n, pod.NodeSelector, pod.Affinity.NodeAffinity)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 8 {
		t.Errorf("actions that were carried out: %s", all)
	}
	if got := c.version().Spec.Overrides; len(got) != 1 || got[0] != otherEntry {
		t.Errorf("overrides of others: %v", got)
	}
}

// TestWithoutVersionOperator checks that nothing is claimed, and that released fields keep their values.
// Who may write only the status of the guard or its budget makes the module neither release them nor restore values of
// his own.
func TestForgedRelease(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	l.CheckForgeries(func() {
		c.change(ha, 3)
		l.wantSettled("NotNeeded", 3, 1, false)
	}, modules.Forgery{Object: deploymentObject, Values: map[string]string{".spec.replicas": "7", ".spec.template.spec.priorityClassName": `"forged"`}},
		modules.Forgery{Object: budgetObject, Values: map[string]string{".spec.maxUnavailable": "5"}},
		modules.Forgery{Object: versionObject, Values: map[string]string{".spec.channel": `"forged"`}, Ignored: true})
}

func TestWithoutVersionOperator(t *testing.T) {
	c := newCluster(suite.Cluster(t))
	c.installCertificates()
	c.change(ha, 3)
	l := c.reconciler("--image=")
	l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForObject")
	l = c.reconciler()
	l.wantSettled("AsExpected", 3, 1, true)
	l.wantActions("ApplyBudget ApplyDeployment")
	l.CheckNoWrites()

	nothing := budgetObject.Unstructured()
	c.NoError(c.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(nothing), client.FieldOwner(fieldOwner), client.DryRunAll))
	if _, found, _ := unstructured.NestedFieldNoCopy(nothing.Object, "spec", "maxUnavailable"); found {
		t.Error("an empty apply keeps the number, so Disown is not needed")
	}
	guard, budget := c.deployment().Spec, c.budget().Spec
	c.Patch("oc", deploymentObject, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"etcdguard"}}}`)
	l.wantSettled("OptedOut", 3, 1, false)
	l.wantActions("DisownDeployment DisownBudget")
	if !equality.Semantic.DeepEqual(guard, c.deployment().Spec) || !equality.Semantic.DeepEqual(budget, c.budget().Spec) {
		t.Errorf("the released guard is %+v %+v", c.deployment().Spec, c.budget().Spec)
	}
	c.Patch("oc", deploymentObject, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`)
	c.change(ha, 5)
	l.wantSettled("AsExpected", 5, 2, true)
	l.wantActions("ApplyDeployment ApplyBudget")
}

func TestMissingNamespace(t *testing.T) {
	c := install(t, sr, 1)
	l := c.reconciler()
	l.wantSettled("AsExpected", 0, 0, true)
	c.change(ha, 5)
	ns := modules.Object("v1", "Namespace", "", namespace)
	c.Delete(ns)
	result := l.Reconcile()
	if result.Reason != "WaitingForObject" || !strings.Contains(result.Message, "The namespace openshift-etcd") || result.After == 0 {
		t.Errorf("terminating: %v, again after %s", result, result.After)
	}

	c.Delete(secretObject, bundleObject)
	live := ns.Unstructured()
	c.NoError(c.Admin.Get(t.Context(), ns.Key(), live))
	c.NoError(unstructured.SetNestedSlice(live.Object, nil, "spec", "finalizers"))
	c.NoError(c.Admin.SubResource("finalize").Update(t.Context(), live))
	c.Eventually("the namespace is gone", func() error {
		if modules.Find[metav1.PartialObjectMetadata](c.Cluster, ns) != nil {
			return errors.New("the namespace exists")
		}
		return nil
	})
	l.Logged = nil
	l.CheckResult(l.Reconcile(), patch.Waiting, "CertificateMissing")
	l.wantActions("")

	c.Apply("installer", ns.Unstructured())
	c.installCertificates()
	c.Permit(suite.Program())
	l.wantSettled("AsExpected", 5, 2, true)
}

// TestYieldToOperator checks that the guard is removed only after the guards of a newer etcd operator are ready.
func TestYieldToOperator(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	l.Logged = nil
	c.cvo = c.VersionOperator()
	c.Create("cluster-etcd-operator", budgetOf("etcd-guard-pdb", 2))
	l.wantSettled("GivingBack", 5, 2, true)
	ready := func(guards int) {
		t.Helper()
		c.PatchStatus("kube-controller-manager", podsBudgetObject,
			`{"status":{"observedGeneration":1,"expectedPods":5,"desiredHealthy":3,"currentHealthy":%d,"disruptionsAllowed":%d}}`, guards, max(guards-3, 0))
	}
	ready(2)
	l.wantSettled("GivingBack", 5, 2, true)
	l.wantActions("")
	ready(3)
	l.wantSettled("NotNeeded", 0, 0, false)
	l.wantActions("DeleteBudget DeleteDeployment Unclaim")
	l.CheckNoWrites()
}

// A node with both roles is listed once.
// The guard's resourceVersion does not change when a person removes the entries, so the ClusterVersion is read last.
func TestVersionIsReadLast(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	c.Patch(cvo, budgetObject, `{"spec":{"maxUnavailable":4}}`)
	l.Logged = nil
	var once sync.Once
	c.etcd.duringList = func() { once.Do(func() { c.Patch("oc", versionObject, `{"spec":{"overrides":[]}}`) }) }
	l.Reconcile()
	l.wantActions("Claim")
}

func TestUnclaimOnlyEntries(t *testing.T) {
	c := install(t, ha, 3)
	c.Patch("installer", versionObject, `{"spec":{"overrides":null}}`)
	l := c.reconciler()
	c.change(ha, 5)
	l.wantSettled("AsExpected", 5, 2, true)
	c.change(ha, 3)
	l.wantSettled("NotNeeded", 3, 1, false)
	if got := c.version().Spec.Overrides; len(got) != 0 {
		t.Errorf("overrides: %v", got)
	}
}

// TestPollsMembers checks that etcd is called only if its members matter, and that the deprecated override is reported.
func TestPollsMembers(t *testing.T) {
	c := install(t, ha, 3)
	c.Patch("oc", etcdObject, `{"spec":{"unsupportedConfigOverrides":{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd":true}}}`)
	l := c.reconciler()
	if result := l.wantSettled("NotNeeded", 3, 1, false); result.After != 15*time.Second || !strings.Contains(result.Message, "is deprecated") {
		t.Errorf("%v, again after %s", result, result.After)
	}
	c.change(sr, 1)
	for _, healthy := range []int{-1, 3} {
		c.etcd.set(3, healthy)
		if result := l.wantSettled("WaitingForMembers", 3, 1, false); result.After != 15*time.Second {
			t.Errorf("%v, again after %s", result, result.After)
		}
	}
	c.etcd.set(1, 1)
	if result := l.wantSettled("AsExpected", 0, 0, true); result.After != 0 {
		t.Errorf("one member: %v, again after %s", result, result.After)
	}
	c.etcd.calls = 0
	l.Reconcile()
	c.setTopology(external)
	l.Reconcile()
	if c.etcd.calls != 0 {
		t.Errorf("etcd was called %d times, want none", c.etcd.calls)
	}
}

// TestManualEdits checks that the cluster-version-operator's number is overwritten, a person's fields only with force.
func TestManualEdits(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	for _, edit := range []string{`{"spec":{"maxUnavailable":4}}`, `{"spec":{"maxUnavailable":null,"minAvailable":1}}`} {
		l.Logged = nil
		c.Patch(cvo, budgetObject, edit)
		l.wantSettled("AsExpected", 5, 2, true)
		l.wantActions("ApplyBudget")
	}
	c.Patch("oc", deploymentObject, `{"spec":{"template":{"spec":{"priorityClassName":"mine","terminationGracePeriodSeconds":9}}}}`)
	if result := l.Reconcile(); result.Reason != "FieldOwnedByOther" || !strings.Contains(result.Message, `is owned by "oc"`) {
		t.Error(result)
	}
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName != "mine" || *pod.TerminationGracePeriodSeconds != 9 {
		t.Errorf("a person's fields were overwritten: %+v", pod)
	}
	c.Patch("oc", budgetObject, `{"spec":{"maxUnavailable":3}}`)
	if result := l.wantSettled("FieldOwnedByOther", 5, 3, true); !strings.Contains(result.Message, `.spec.maxUnavailable is owned by "oc"`) {
		t.Error(result)
	}
	l.CheckNoWrites()
	c.reconciler("--force-conflicts").wantSettled("AsExpected", 5, 2, true)
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName == "mine" {
		t.Errorf("a person's fields were not overwritten with force: %+v", pod)
	}
}

// TestOverridesOfOthers sets an entry with unmanaged: false between the read and the write; it stays, also with force.
func TestOverridesOfOthers(t *testing.T) {
	c := install(t, ha, 3)
	c.change(ha, 5)
	l := c.reconciler("--force-conflicts")
	l.beforeFirst(http.MethodPatch, func() {
		v := c.version()
		v.Spec.Overrides = append(v.Spec.Overrides,
			configv1.ComponentOverride{Kind: "PodDisruptionBudget", Group: "policy", Namespace: namespace, Name: guardName})
		c.Update("oc", v)
	})
	l.CheckResult(l.Reconcile(), patch.Blocked, "FieldOwnedByOther")
	c.wantGuard(3, 1, false)
}

// TestFailedReads checks that the guard stays after a failed read, and without an Infrastructure.
func TestFailedReads(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	for path, mode := range map[string]configv1.TopologyMode{
		"/infrastructures/": sr, "/deployments/": sr, "/poddisruptionbudgets/": sr, "/clusterversions/": sr, "/etcds/": sr,
		"/nodes": sr, "/secrets/": dual, "/configmaps/": dual, // not needed on one node
	} {
		l.CrashInjector.FailReads(path)
		c.setTopology(mode) // the nodes stay
		c.etcd.set(1, 1)
		if _, err := l.Try(); err == nil {
			t.Errorf("no error although %s cannot be read", path)
		}
		l.CrashInjector.FailReads("")
		c.wantGuard(5, 2, true)
		c.change(ha, 5)
		l.CheckNoWrites()
	}
	c.Delete(controller.Infrastructure)
	l.CheckNoWrites()
	l = c.reconciler() // a new process has no last known topology
	l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForInfrastructure")
	l.CheckNoWrites()
	c.wantGuard(5, 2, true)
}

// TestWritesAreBound changes the object right before the request, so nothing is written.
func TestWritesAreBound(t *testing.T) {
	touch := func(c *cluster, mode configv1.TopologyMode, n int, o controller.Object, manager string) {
		c.change(mode, n)
		c.Patch(manager, o, `{"metadata":{"labels":{"touched":"yes"}}}`)
	}
	for name, test := range map[string]struct {
		prepare   func(*cluster, reconciler)
		method    string
		touch     func(*cluster)
		forbidden string
	}{
		"an apply": {
			func(c *cluster, r reconciler) { c.change(ha, 5); r.Reconcile(); c.cvo.RunOnce() }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, deploymentObject, "oc") }, "Apply",
		},
		"a claim": {
			func(c *cluster, _ reconciler) { c.change(ha, 5) }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, versionObject, "oc") }, "Claim",
		},
		"a claim for one node": {
			func(c *cluster, _ reconciler) { c.change(sr, 1) }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, versionObject, "oc") }, "Claim",
		},
		"a disowning": {
			func(c *cluster, r reconciler) {
				c.change(ha, 5)
				r.Settle()
				c.change(ha, 3)
				r.stepUntil(decision.ApplyDeployment)
			}, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 5, deploymentObject, "oc") }, "Disown",
		},
		"a creation": {
			func(c *cluster, r reconciler) { c.change(sr, 1); r.Settle(); c.change(dual, 2) }, http.MethodPatch,
			func(c *cluster) { c.Create("oc", budgetOf(guardName, 2)) }, "ApplyBudget",
		},
		"a deletion": {
			func(c *cluster, r reconciler) { c.change(sr, 1); r.Reconcile(); c.cvo.RunOnce() }, http.MethodDelete,
			func(c *cluster) { touch(c, ha, 3, budgetObject, cvo) }, "Delete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.reconciler()
			test.prepare(c, l)
			l.Logged = nil
			touched := false
			l.beforeFirst(test.method, func() { touched = true; test.touch(c) })
			l.Reconcile()
			if did := l.actions(); strings.HasPrefix(did, test.forbidden) || !touched {
				t.Errorf("touched %t, actions %s", touched, did)
			}
		})
	}
}

func TestDryRun(t *testing.T) {
	c := install(t, ha, 3)
	l, dry := c.reconciler(), c.reconciler("--dry-run")
	wantDryRun := func(action decision.Action) {
		t.Helper()
		var result patch.Result
		for _, write := range c.Server.WritesDuring(t, suite.User(), func() { result = dry.Reconcile() }) {
			if !strings.Contains(write.URI, "dryRun=All") && write.Verb != "delete" { // a deletion has it in the body
				t.Errorf("not a dry run: %s", write)
			}
		}
		if result.State != patch.WouldChange || !strings.HasPrefix(result.Message, "Dry run: the next write would be "+string(action)+". ") {
			t.Errorf("%v, want %s", result, action)
		}
	}
	c.change(ha, 5)
	wantDryRun(decision.Claim)
	l.stepUntil(decision.Claim)
	c.cvo.RunOnce()
	wantDryRun(decision.ApplyDeployment)
	l.wantSettled("AsExpected", 5, 2, true)
	c.change(sr, 1)
	wantDryRun(decision.DeleteBudget)
	c.wantGuard(5, 2, true)
	c.change(ha, 3)
	l.stepUntil(decision.ApplyDeployment)
	wantDryRun(decision.DisownDeployment)
	l.stepUntil(decision.DisownBudget)
	wantDryRun(decision.Unclaim)
}

// A missing permission is reported and retried.
func TestForbidden(t *testing.T) {
	c := install(t, ha, 5)
	nobody := reconciler{c.ReconcilerOf(func(l *modules.Reconciler) (controller.ReconcileFunc, error) {
		l.Environment.Client = c.Server.Client(t, "nobody")
		return l.Module.Reconciler(l.Environment)
	}, "--image=cli", "--etcd-endpoints="+c.etcd.endpoint), c}
	wantForbidden := func(resource string) {
		t.Helper()
		if result := nobody.Reconcile(); result.Reason != "Forbidden" || !strings.Contains(result.Message, resource) || result.After == 0 {
			t.Errorf("%v, again in %s", result, result.After)
		}
	}
	wantForbidden("clusterversions.config.openshift.io")
	c.reconciler().stepUntil(decision.Claim)
	c.cvo.RunOnce()
	wantForbidden("poddisruptionbudgets.policy in namespace openshift-etcd")
}

// TestRevertedWrites checks that a client that reverts every write causes at most two applies for each reconciliation.
func TestRevertedWrites(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.wantSettled("AsExpected", 5, 2, true)
	c.Patch(cvo, budgetObject, `{"spec":{"maxUnavailable":4}}`)
	sent := 0
	l.CrashInjector.BeforeRequest(func(r *http.Request) {
		if r.Method == http.MethodPatch {
			sent++
			b := c.budget()
			b.Labels = map[string]string{"version": b.ResourceVersion}
			c.NoError(c.Admin.Update(context.WithoutCancel(t.Context()), b, client.FieldOwner(cvo)))
		}
	})
	if result, err := l.Step(); err != nil || result.State != patch.Progressing || result.After != controller.RequeueDelay || sent > 2 {
		t.Errorf("%v, %v, again in %s; %d writes", result, err, result.After, sent)
	}
	l.CrashInjector.Reset()
	l.wantSettled("AsExpected", 5, 2, true)
}
