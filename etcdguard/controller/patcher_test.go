package controller

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/patchtest"
)

func budgetOf(name string, maxUnavailable int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(maxUnavailable))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": guardName}}
	return b
}

// TestLife takes a cluster through every action.
func TestLife(t *testing.T) {
	c := install(t, ha, 3)
	l := c.reconciler()
	var all []string
	for _, stage := range []struct {
		mode                     configv1.TopologyMode
		n                        int
		does, reason             string
		replicas, maxUnavailable int
		ours                     bool
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
		c.become(stage.mode, stage.n)
		l.settles(stage.reason, stage.replicas, stage.maxUnavailable, stage.ours)
		all = append(all, strings.Fields(stage.does)...)
		l.did(stage.does)
		l.CheckNoWrites()
		if stage.replicas == 0 || !stage.ours {
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
		t.Errorf("only %s were carried out", all)
	}
	if got := c.version().Spec.Overrides; len(got) != 1 || got[0] != otherEntry {
		t.Errorf("overrides of others: %v", got)
	}
}

// Without a cluster-version-operator nothing is claimed. What is released stays as it is, and can be taken again.
func TestWithoutVersionOperator(t *testing.T) {
	c := newCluster(suite.Cluster(t))
	c.installCertificates()
	c.become(ha, 3)
	l := c.reconciler("--image=")
	l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForObject")
	l = c.reconciler()
	l.settles("AsExpected", 3, 1, true)
	l.did("ApplyBudget ApplyDeployment")
	l.CheckNoWrites()

	nothing := budgetObject.Unstructured()
	c.NoError(c.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(nothing), client.FieldOwner(fieldOwner), client.DryRunAll))
	if _, found, _ := unstructured.NestedFieldNoCopy(nothing.Object, "spec", "maxUnavailable"); found {
		t.Error("an apply of nothing keeps the number, so Disown is not needed")
	}
	guard, budget := c.deployment().Spec, c.budget().Spec
	c.Patch("oc", deploymentObject, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"etcdguard"}}}`)
	l.settles("OptedOut", 3, 1, false)
	l.did("DisownDeployment DisownBudget")
	if !equality.Semantic.DeepEqual(guard, c.deployment().Spec) || !equality.Semantic.DeepEqual(budget, c.budget().Spec) {
		t.Errorf("released it is %+v %+v", c.deployment().Spec, c.budget().Spec)
	}
	c.Patch("oc", deploymentObject, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`)
	c.become(ha, 5)
	l.settles("AsExpected", 5, 2, true)
	l.did("ApplyDeployment ApplyBudget")
}

// A namespace that is being deleted, one that is missing, and a new one.
func TestMissingNamespace(t *testing.T) {
	c := install(t, sr, 1)
	l := c.reconciler()
	l.settles("AsExpected", 0, 0, true)
	c.become(ha, 5)
	ns := patchtest.Object("v1", "Namespace", "", namespace)
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
		if patchtest.Find[metav1.PartialObjectMetadata](c.Cluster, ns) != nil {
			return errors.New("it still exists")
		}
		return nil
	})
	l.Logged = nil
	l.CheckResult(l.Reconcile(), patch.Waiting, "CertificateMissing")
	l.did("")

	c.Apply("installer", ns.Unstructured())
	c.installCertificates()
	c.Permit(suite.Program)
	l.settles("AsExpected", 5, 2, true)
}

// A newer release has no static guard, and its etcd operator makes guards of its own. This guard stays until those are ready.
func TestYieldsToTheOperator(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.settles("AsExpected", 5, 2, true)
	l.Logged = nil
	c.cvo = c.FakeVersionOperator()
	c.Create("cluster-etcd-operator", budgetOf("etcd-guard-pdb", 2))
	l.settles("GivingBack", 5, 2, true)
	ready := func(guards int) {
		t.Helper()
		c.PatchStatus("kube-controller-manager", podsBudgetObject,
			`{"status":{"observedGeneration":1,"expectedPods":5,"desiredHealthy":3,"currentHealthy":%d,"disruptionsAllowed":%d}}`, guards, max(guards-3, 0))
	}
	ready(2)
	l.settles("GivingBack", 5, 2, true)
	l.did("")
	ready(3)
	l.settles("NotNeeded", 0, 0, false)
	l.did("DeleteBudget DeleteDeployment Unclaim")
	l.CheckNoWrites()
}

// An arbiter counts, a node with both roles counts once, and a worker never does.
func TestControlPlane(t *testing.T) {
	c := install(t, arbiter, 3)
	c.Patch("kubelet", nodeObject(1), `{"metadata":{"labels":{%q:""}}}`, arbiterRole)
	names := ""
	for _, node := range must(controlPlane(t.Context(), c.Admin)) {
		names += " " + node.Name
	}
	if names != " node-1 node-2 node-0" {
		t.Error(names)
	}
}

// The ClusterVersion is read last: no resourceVersion of the guard changes when a person removes the entries.
func TestVersionIsReadLast(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.settles("AsExpected", 5, 2, true)
	c.Patch(cvo, budgetObject, `{"spec":{"maxUnavailable":4}}`)
	l.Logged = nil
	var once sync.Once
	c.etcd.meanwhile = func() { once.Do(func() { c.Patch("oc", versionObject, `{"spec":{"overrides":[]}}`) }) }
	l.Reconcile()
	l.did("Claim")
}

// Entries that are the only ones can be removed, too.
func TestUnclaimTheOnlyEntries(t *testing.T) {
	c := install(t, ha, 3)
	c.Patch("installer", versionObject, `{"spec":{"overrides":null}}`)
	l := c.reconciler()
	c.become(ha, 5)
	l.settles("AsExpected", 5, 2, true)
	c.become(ha, 3)
	l.settles("NotNeeded", 3, 1, false)
	if got := c.version().Spec.Overrides; len(got) != 0 {
		t.Errorf("overrides: %v", got)
	}
}

// Etcd is polled while the guard may depend on its members, and not called where it does not. The deprecated override is reported.
func TestPollsMembers(t *testing.T) {
	c := install(t, ha, 3)
	c.Patch("oc", etcdObject, `{"spec":{"unsupportedConfigOverrides":{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd":true}}}`)
	l := c.reconciler()
	if result := l.settles("NotNeeded", 3, 1, false); result.After != membersInterval || !strings.Contains(result.Message, "is deprecated") {
		t.Errorf("%v, again after %s", result, result.After)
	}
	c.become(sr, 1)
	for _, healthy := range []int{-1, 3} {
		c.etcd.set(3, healthy)
		if result := l.settles("WaitingForMembers", 3, 1, false); result.After != membersInterval {
			t.Errorf("%v, again after %s", result, result.After)
		}
	}
	c.etcd.set(1, 1)
	if result := l.settles("AsExpected", 0, 0, true); result.After != 0 {
		t.Errorf("one member: %v, again after %s", result, result.After)
	}
	c.etcd.calls = 0
	l.Reconcile()
	c.flip(external)
	l.Reconcile()
	if c.etcd.calls != 0 {
		t.Errorf("etcd was called %d times for nothing", c.etcd.calls)
	}
}

// The cluster-version-operator's number is overwritten. A person's fields stay, and are reported, also one that Decide does not know; they are taken
// with force.
func TestEditedByHand(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.settles("AsExpected", 5, 2, true)
	for _, edit := range []string{`{"spec":{"maxUnavailable":4}}`, `{"spec":{"maxUnavailable":null,"minAvailable":1}}`} {
		l.Logged = nil
		c.Patch(cvo, budgetObject, edit)
		l.settles("AsExpected", 5, 2, true)
		l.did("ApplyBudget")
	}
	c.Patch("oc", deploymentObject, `{"spec":{"template":{"spec":{"priorityClassName":"mine","terminationGracePeriodSeconds":9}}}}`)
	if result := l.Reconcile(); result.Reason != "FieldOwnedByOther" || !strings.Contains(result.Message, `is owned by "oc"`) {
		t.Error(result)
	}
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName != "mine" || *pod.TerminationGracePeriodSeconds != 9 {
		t.Errorf("a person's fields were taken: %+v", pod)
	}
	c.Patch("oc", budgetObject, `{"spec":{"maxUnavailable":3}}`)
	if result := l.settles("FieldOwnedByOther", 5, 3, true); !strings.Contains(result.Message, `.spec.maxUnavailable is owned by "oc"`) {
		t.Error(result)
	}
	l.CheckNoWrites()
	c.reconciler("--force-conflicts").settles("AsExpected", 5, 2, true)
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName == "mine" {
		t.Errorf("with force they were not: %+v", pod)
	}
}

// An entry with unmanaged: false that another client sets between the read and the write stays, also with force.
func TestOverridesOfOthers(t *testing.T) {
	c := install(t, ha, 3)
	c.become(ha, 5)
	l := c.reconciler("--force-conflicts")
	l.onFirst(http.MethodPatch, func() {
		v := c.version()
		v.Spec.Overrides = append(v.Spec.Overrides,
			configv1.ComponentOverride{Kind: "PodDisruptionBudget", Group: "policy", Namespace: namespace, Name: guardName})
		c.Update("oc", v)
	})
	l.CheckResult(l.Reconcile(), patch.Blocked, "FieldOwnedByOther")
	c.guard(3, 1, false)
}

// A failed read ends the reconciliation, and a topology that is gone is the last known one: the guard stays.
func TestFailedReads(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.settles("AsExpected", 5, 2, true)
	for path, mode := range map[string]configv1.TopologyMode{
		"/infrastructures/": sr, "/deployments/": sr, "/poddisruptionbudgets/": sr, "/clusterversions/": sr, "/etcds/": sr,
		"/nodes": sr, "/secrets/": dual, "/configmaps/": dual, // on one node they make no difference
	} {
		l.CrashInjector.FailReads(path)
		c.flip(mode) // and nodes and members stay
		c.etcd.set(1, 1)
		if _, err := l.Try(); err == nil {
			t.Errorf("%s cannot be read, and it decides all the same", path)
		}
		l.CrashInjector.FailReads("")
		c.guard(5, 2, true)
		c.become(ha, 5)
		l.CheckNoWrites()
	}
	c.Delete(controller.Infrastructure)
	l.CheckNoWrites()
	l = c.reconciler() // a new process has never known any
	l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForInfrastructure")
	l.CheckNoWrites()
	c.guard(5, 2, true)
}

// What it was decided on has changed right before the request, so nothing is written.
func TestWritesAreBound(t *testing.T) {
	touch := func(c *cluster, mode configv1.TopologyMode, n int, o controller.Object, manager string) {
		c.become(mode, n)
		c.Patch(manager, o, `{"metadata":{"labels":{"touched":"yes"}}}`)
	}
	for name, test := range map[string]struct {
		prepare func(*cluster, reconciler)
		method  string
		touch   func(*cluster)
		never   string
	}{
		"an apply": {
			func(c *cluster, l reconciler) { c.become(ha, 5); l.Reconcile(); c.cvo.RunOnce() }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, deploymentObject, "oc") }, "Apply",
		},
		"a claim": {
			func(c *cluster, _ reconciler) { c.become(ha, 5) }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, versionObject, "oc") }, "Claim",
		},
		"a claim for one node": {
			func(c *cluster, _ reconciler) { c.become(sr, 1) }, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 3, versionObject, "oc") }, "Claim",
		},
		"a disowning": {
			func(c *cluster, l reconciler) {
				c.become(ha, 5)
				l.Settle()
				c.become(ha, 3)
				l.until(etcdguard.ApplyDeployment)
			}, http.MethodPatch,
			func(c *cluster) { touch(c, ha, 5, deploymentObject, "oc") }, "Disown",
		},
		"what was missing": {
			func(c *cluster, l reconciler) { c.become(sr, 1); l.Settle(); c.become(dual, 2) }, http.MethodPatch,
			func(c *cluster) { c.Create("oc", budgetOf(guardName, 2)) }, "ApplyBudget",
		},
		"a deletion": {
			func(c *cluster, l reconciler) { c.become(sr, 1); l.Reconcile(); c.cvo.RunOnce() }, http.MethodDelete,
			func(c *cluster) { touch(c, ha, 3, budgetObject, cvo) }, "Delete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.reconciler()
			test.prepare(c, l)
			l.Logged = nil
			touched := false
			l.onFirst(test.method, func() { touched = true; test.touch(c) })
			l.Reconcile()
			if did := l.actions(); strings.HasPrefix(did, test.never) || !touched {
				t.Errorf("touched %t, it did %s", touched, did)
			}
		})
	}
}

// A dry run reports at every step what it would do, and writes nothing.
func TestDryRun(t *testing.T) {
	c := install(t, ha, 3)
	l, dry := c.reconciler(), c.reconciler("--dry-run")
	reports := func(action etcdguard.Action) {
		t.Helper()
		var result patch.Result
		for _, write := range c.Server.WritesDuring(t, suite.User(), func() { result = dry.Reconcile() }) {
			if !strings.Contains(write.URI, "dryRun=All") && write.Verb != "delete" { // of a deletion it is in the body
				t.Errorf("not a dry run: %s", write)
			}
		}
		if result.State != patch.WouldChange || !strings.HasPrefix(result.Message, "Dry run: the next write would be "+string(action)+". ") {
			t.Errorf("%v, want %s", result, action)
		}
	}
	c.become(ha, 5)
	reports(etcdguard.Claim)
	l.until(etcdguard.Claim)
	c.cvo.RunOnce()
	reports(etcdguard.ApplyDeployment)
	l.settles("AsExpected", 5, 2, true)
	c.become(sr, 1)
	reports(etcdguard.DeleteBudget)
	c.guard(5, 2, true)
	c.become(ha, 3)
	l.until(etcdguard.ApplyDeployment)
	reports(etcdguard.DisownDeployment)
	l.until(etcdguard.DisownBudget)
	reports(etcdguard.Unclaim)
}

// Without its permissions it reports what is missing, and retries, because no watch shows when they are granted.
func TestForbidden(t *testing.T) {
	c := install(t, ha, 5)
	nobody := reconciler{c.ReconcilerOf(func(l *patchtest.Reconciler) (controller.ReconcileFunc, error) {
		l.Environment.Client = c.Server.Client(t, "nobody")
		return l.Module.Reconciler(l.Environment)
	}, "--image=cli", "--etcd-endpoints="+c.etcd.endpoint), c}
	reports := func(resource string) {
		t.Helper()
		if result := nobody.Reconcile(); result.Reason != "Forbidden" || !strings.Contains(result.Message, resource) || result.After == 0 {
			t.Errorf("%v, again in %s", result, result.After)
		}
	}
	reports("clusterversions.config.openshift.io")
	c.reconciler().until(etcdguard.Claim)
	c.cvo.RunOnce()
	reports("poddisruptionbudgets.policy in namespace openshift-etcd")
}

// A client that reverts every write causes one apply, and one with force, in each reconciliation, and a pause after it.
func TestFight(t *testing.T) {
	c := install(t, ha, 5)
	l := c.reconciler()
	l.settles("AsExpected", 5, 2, true)
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
		t.Errorf("%v, %v, again in %s; it wrote %d times", result, err, result.After, sent)
	}
	l.CrashInjector.Reset()
	l.settles("AsExpected", 5, 2, true)
}
