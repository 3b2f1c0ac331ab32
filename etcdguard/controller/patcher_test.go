package controller

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// The whole life of a cluster, through every action.
func TestLife(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	var all []string
	for _, stage := range []struct {
		mode                     configv1.TopologyMode
		n                        int
		does, reason             string
		replicas, maxUnavailable int
		ours                     bool
	}{
		{ha, 3, "", "NotNeeded", 3, 1, false},
		{ha, 5, "Claim ApplyDeployment ApplyBudget TidyDeployment TidyBudget", "AsExpected", 5, 2, true},
		{ha, 4, "ApplyBudget ApplyDeployment", "AsExpected", 4, 1, true},
		{arbiter, 3, "ApplyDeployment", "AsExpected", 3, 1, true},
		{ha, 3, "ApplyDeployment DisownDeployment DisownBudget Unclaim", "NotNeeded", 3, 1, false},
		{sr, 1, "Claim DeleteBudget DeleteDeployment", "AsExpected", 0, 0, true},
		{dual, 2, "ApplyBudget ApplyDeployment", "AsExpected", 2, 1, true},
		{ha, 3, "ApplyDeployment DisownDeployment DisownBudget Unclaim", "NotNeeded", 3, 1, false},
		{external, 0, "", "NotNeeded", 3, 1, false},
	} {
		c.become(stage.mode, stage.n)
		if got := l.settle(); got.Reason != stage.reason {
			t.Errorf("%s with %d: %v, want %s", stage.mode, stage.n, got, stage.reason)
		}
		does := l.doing()
		if does != stage.does {
			t.Errorf("%s with %d: %s, want %s", stage.mode, stage.n, does, stage.does)
		}
		all = append(all, strings.Fields(does)...)
		c.guard(stage.replicas, stage.maxUnavailable, stage.ours)
		l.atRest()
	}
	for _, action := range []etcdguard.Action{
		etcdguard.Claim, etcdguard.ApplyBudget, etcdguard.ApplyDeployment, etcdguard.TidyBudget, etcdguard.TidyDeployment, etcdguard.DeleteBudget,
		etcdguard.DeleteDeployment, etcdguard.DisownBudget, etcdguard.DisownDeployment, etcdguard.Unclaim,
	} {
		if !slices.Contains(all, string(action)) {
			t.Errorf("%s was never carried out, so nothing is known about it", action)
		}
	}
	if got := c.version().Spec.Overrides; len(got) != 1 || got[0] != otherEntry {
		t.Errorf("overrides of others: %v", got)
	}
}

// Entries that are the only ones can be given back as well.
func TestUnclaimTheOnlyEntries(t *testing.T) {
	c := install(t, ha, 3)
	c.edit(versionObject.Unstructured(), "installer", `{"spec":{"overrides":null}}`)
	l := c.looker()
	c.become(ha, 5)
	l.settle()
	c.guard(5, 2, true)
	c.become(ha, 3)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.guard(3, 1, false)
	if got := c.version().Spec.Overrides; len(got) != 0 {
		t.Errorf("overrides: %v", got)
	}
}

// What is missing or changed of a guard that the release has right is mended by the cluster-version-operator, without a claim.
func TestReleaseMendsItsOwn(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	for name, damage := range map[string]func(){
		"has no PodDisruptionBudget;": func() { c.must(c.admin.Delete(t.Context(), budgetObject.Unstructured())) },
		"has no Deployment;":          func() { c.must(c.admin.Delete(t.Context(), deploymentObject.Unstructured())) },
		"has a PodDisruptionBudget whose selector does not select its pods;": func() {
			c.edit(budgetObject.Unstructured(), "oc", `{"spec":{"selector":{"matchLabels":{"k8s-app":"x"}}}}`)
		},
	} {
		l.want(l.settle(), patch.NotNeeded, "NotNeeded")
		damage()
		result := l.look()
		l.want(result, patch.Waiting, "WaitingForObject")
		if !strings.Contains(result.Message, name) {
			t.Errorf("%s; want it to say %q", result, name)
		}
		l.atRest()
		l.want(l.settle(), patch.NotNeeded, "NotNeeded")
		c.guard(3, 1, false)
	}
	if did := l.doing(); did != "" {
		t.Errorf("it did %s", did)
	}
}

// Without a cluster-version-operator nobody has to be told anything; the guard is made.
func TestWithoutVersionOperator(t *testing.T) {
	c := newCluster(t, shared.Server(t))
	c.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, "installer")
	c.installCertificates()
	c.become(ha, 3)
	l := c.looker(func(p *patcher) { p.image = "" })
	l.want(l.look(), patch.Waiting, "WaitingForObject")
	l = c.looker()
	l.settle()
	if got, want := l.doing(), "ApplyBudget ApplyDeployment"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	l.atRest()
	if d := c.deployment(); *d.Spec.Replicas != 3 || !appliedBy(d, fieldOwner) {
		t.Errorf("%+v", d)
	}

	// What it gives back then stays as it is, also when it comes back for it.
	c.edit(deploymentObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"etcdguard"}}}`)
	l.want(l.settle(), patch.OptedOut, "OptedOut")
	if got, want := l.doing(), "DisownDeployment DisownBudget"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if d, b := c.deployment(), c.budget(); *d.Spec.Replicas != 3 || b.Spec.MaxUnavailable.IntValue() != 1 || appliedBy(d, fieldOwner) || appliedBy(b, fieldOwner) {
		t.Errorf("given back it is %+v %+v", d, b)
	}
	c.edit(deploymentObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`)
	c.become(ha, 5)
	l.want(l.settle(), patch.InForce, "AsExpected")
	if got, want := l.doing(), "ApplyDeployment ApplyBudget"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A missing namespace, and one that is being deleted.
func TestMissingNamespace(t *testing.T) {
	c := install(t, sr, 1)
	l := c.looker()
	l.settle()
	c.become(ha, 5)
	ns := object("v1", "Namespace", "", namespace)
	c.must(c.admin.Delete(t.Context(), ns))
	l.doing()
	if result := l.look(); result.Reason != "WaitingForObject" || !strings.Contains(result.Message, "The namespace openshift-etcd") || result.After == 0 {
		t.Errorf("terminating: %v, again after %s", result, result.After)
	}

	c.must(c.admin.DeleteAllOf(t.Context(), object("v1", "Secret", namespace, ""), client.InNamespace(namespace)))
	c.must(c.admin.DeleteAllOf(t.Context(), object("v1", "ConfigMap", namespace, ""), client.InNamespace(namespace)))
	c.must(c.admin.Get(t.Context(), client.ObjectKey{Name: namespace}, ns))
	c.must(unstructured.SetNestedSlice(ns.Object, nil, "spec", "finalizers"))
	c.must(c.admin.SubResource("finalize").Update(t.Context(), ns))
	c.eventually("the namespace is gone", func() error {
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: namespace}, ns); client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return errStillThere
	})
	if result := l.look(); result.Reason != "CertificateMissing" || !strings.Contains(result.Message, "the Secret etcd-client and the ConfigMap etcd-ca-bundle in the namespace openshift-etcd") {
		t.Errorf("missing: %v", result)
	}
	if did := l.doing(); did != "" {
		t.Errorf("it wrote %s", did)
	}

	c.must(c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	c.installCertificates()
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.guard(5, 2, true)
}

// Without its certificate no guard is made, and none is taken over.
func TestMissingCertificate(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	secret, bundle := object("v1", "Secret", namespace, "etcd-client"), object("v1", "ConfigMap", namespace, "etcd-ca-bundle")
	c.must(c.admin.Delete(t.Context(), secret))
	c.become(ha, 5)
	result := l.settle()
	l.want(result, patch.Waiting, "CertificateMissing")
	if !strings.Contains(result.Message, "without the Secret etcd-client in") {
		t.Error(result)
	}
	c.must(c.admin.Delete(t.Context(), bundle))
	if result := l.look(); !strings.Contains(result.Message, "without the Secret etcd-client and the ConfigMap etcd-ca-bundle in") {
		t.Error(result)
	}
	c.guard(3, 1, false)
	c.installCertificates()
	l.settle()
	c.guard(5, 2, true)

	// On the way back from one node there is nothing to take over.
	c.become(sr, 1)
	l.settle()
	c.must(c.admin.Delete(t.Context(), object("v1", "ConfigMap", namespace, "etcd-ca-bundle")))
	c.become(ha, 3)
	if result := l.settle(); result.Reason != "CertificateMissing" || !strings.Contains(result.Message, "without the ConfigMap etcd-ca-bundle in") {
		t.Error(result)
	}
	c.guard(0, 0, false)
}

// Nodes that are not there yet, that have no role, and that come and go.
func TestNodes(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	for i := range 3 {
		c.must(c.admin.Delete(t.Context(), object("v1", "Node", "", nodeName(i))))
	}
	c.nodes = -1
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.guard(3, 1, false)

	c.nodes = 0
	c.must(c.admin.Delete(t.Context(), object("v1", "Node", "", "worker")))
	c.become(ha, 5)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.guard(5, 2, true)
	l.doing()

	node := object("v1", "Node", "", nodeName(4))
	for _, change := range []string{
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
	} {
		c.edit(node, "kubelet", change, "status")
		l.atRest()
	}
	for _, change := range []string{
		`{"spec":{"unschedulable":true}}`, `{"metadata":{"labels":{"node-role.kubernetes.io/master":null}}}`,
		`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`,
	} {
		c.edit(node, "oc", change)
		l.atRest()
	}
	// Without roles there are as many members all the same, and when they cannot be read either, nothing is loosened.
	for i := range 5 {
		c.edit(object("v1", "Node", "", nodeName(i)), "oc", `{"metadata":{"labels":{"node-role.kubernetes.io/master":null}}}`)
	}
	l.atRest()
	c.etcd.set(0, -1)
	l.atRest()
	l.want(l.look(), patch.Progressing, "MembersUnhealthy")
	c.guard(5, 2, true)
}

// An arbiter counts, also where only the nodes are known; and so does a node that is both.
func TestArbiterCounts(t *testing.T) {
	c := install(t, arbiter, 4)
	c.edit(object("v1", "Node", "", nodeName(1)), "kubelet", `{"metadata":{"labels":{"node-role.kubernetes.io/arbiter":""}}}`)
	c.etcd.set(0, -1)
	l := c.looker()
	if result := l.settle(); result.Reason != "AsExpected" || result.After != membersPause {
		t.Errorf("%v, again after %s", result, result.After)
	}
	c.guard(4, 1, true)
}

// Whether the cluster-version-operator is kept away is looked at last, because no resourceVersion of the guard tells.
func TestVersionIsReadLast(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	c.edit(budgetObject.Unstructured(), cvo, `{"spec":{"maxUnavailable":4}}`)
	l.doing()
	read := make(chan struct{})
	l.patcher.live = telling{l.patcher.live, versionObject.Kind, sync.OnceFunc(func() { close(read) })}
	c.etcd.meanwhile = func() {
		c.etcd.meanwhile = nil
		select { // it may be read beside the members, and must be read after them
		case <-read:
		case <-time.After(patience):
		}
		c.edit(versionObject.Unstructured(), "oc", `{"spec":{"overrides":[]}}`)
	}
	l.look()
	if did := l.doing(); did != "Claim" {
		t.Errorf("it did %s", did)
	}
}

// telling tells when an object of a kind was read.
type telling struct {
	client.Reader
	kind string
	tell func()
}

func (r telling) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	if o.GetObjectKind().GroupVersionKind().Kind == r.kind {
		r.tell()
	}
	return err
}

// The count follows the members that are left when a node is gone, and asks for them until they are.
func TestAsksUntilMembersAreGone(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	if result := l.look(); result.After != 0 {
		t.Errorf("at rest it asks again after %s", result.After)
	}
	c.resize(ha, 4)
	if result := l.settle(); result.Reason != "AsExpected" || result.After != membersPause {
		t.Errorf("a node is gone: %v, again after %s", result, result.After)
	}
	c.guard(5, 2, true)
	c.etcd.set(4, 2)
	if result := l.settle(); result.Reason != "MembersUnhealthy" || result.After != membersPause {
		t.Errorf("two of four are healthy: %v, again after %s", result, result.After)
	}
	c.guard(5, 1, true)
	c.etcd.set(4, 4)
	if result := l.settle(); result.Reason != "AsExpected" || result.After != 0 {
		t.Errorf("the member is gone: %v, again after %s", result, result.After)
	}
	c.guard(4, 1, true)

	// Where nothing depends on them nobody is asked.
	c.become(sr, 1)
	l.settle()
	c.etcd.asked = 0
	l.look()
	c.flip(external)
	l.look()
	if c.etcd.asked != 0 {
		t.Errorf("etcd was asked %d times for nothing", c.etcd.asked)
	}
}

// On one node the guard stays while the members cannot be read, or are several.
func TestOneNodeWaitsForMembers(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	c.resize(sr, 1)
	c.flip(sr)
	for _, healthy := range []int{-1, 0, 3} {
		c.etcd.set(3, healthy)
		result := l.settle()
		if result.Reason != "WaitingForMembers" || result.After != membersPause {
			t.Errorf("%d healthy: %v, again after %s", healthy, result, result.After)
		}
		c.guard(3, 1, false)
	}
	c.etcd.set(1, 1)
	l.settle()
	c.guard(0, 0, true)
}

// A person's number stays, and is reported; with force it is taken. The cluster-version-operator's is taken in any case.
func TestEditedByHand(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	l.doing()
	c.edit(budgetObject.Unstructured(), cvo, `{"spec":{"maxUnavailable":4}}`)
	l.settle()
	if got, want := l.doing(), "ApplyBudget"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.edit(budgetObject.Unstructured(), "oc", `{"spec":{"maxUnavailable":3}}`)
	if result := l.settle(); result.Reason != "FieldOwnedByOther" || !strings.Contains(result.Message, `.spec.maxUnavailable is owned by "oc"`) {
		t.Error(result)
	}
	c.guard(5, 3, true)
	l.atRest()
	forced := c.looker(func(p *patcher) { p.writer.force = true })
	forced.want(forced.settle(), patch.InForce, "AsExpected")
	c.guard(5, 2, true)
}

// A field that is no number, and that nobody decides on: the API server says whose it is, and it is not taken.
func TestOtherFieldOfAPerson(t *testing.T) {
	c := install(t, ha, 3)
	c.edit(deploymentObject.Unstructured(), "oc", `{"spec":{"template":{"spec":{"priorityClassName":"mine","terminationGracePeriodSeconds":9}}}}`)
	l := c.looker()
	c.become(ha, 5)
	var result patch.Result
	l.look()
	c.versionOperator().observe(t.Context()) //nolint:errcheck // the next look would wait
	result = l.look()
	if result.Reason != "FieldOwnedByOther" || !strings.Contains(result.Message, `is owned by "oc"`) {
		t.Error(result)
	}
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName != "mine" || *pod.TerminationGracePeriodSeconds != 9 {
		t.Errorf("a person's fields were taken: %+v", pod)
	}
	forced := c.looker(func(p *patcher) { p.writer.force = true })
	forced.want(forced.settle(), patch.InForce, "AsExpected")
	if pod := c.deployment().Spec.Template.Spec; pod.PriorityClassName == "mine" {
		t.Errorf("with force they were not: %+v", pod)
	}
}

// Overrides are never forced, and somebody who says that the cluster-version-operator shall manage the guard is heeded.
func TestOverridesOfOthers(t *testing.T) {
	c := install(t, ha, 3)
	v := c.version()
	v.Spec.Overrides = append(v.Spec.Overrides, configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: namespace, Name: guardName})
	c.must(c.admin.Update(t.Context(), v, client.FieldOwner("oc")))
	c.become(ha, 5)
	l := c.looker(func(p *patcher) { p.writer.force = true })
	l.want(l.settle(), patch.Blocked, "FieldOwnedByOther")
	c.guard(3, 1, false)

	// The same, but between the read and the write.
	v = c.version()
	v.Spec.Overrides = v.Spec.Overrides[:1]
	c.must(c.admin.Update(t.Context(), v, client.FieldOwner("oc")))
	l = c.looker(func(p *patcher) { p.writer.force = true })
	l.onFirst(http.MethodPatch, func() {
		v.Spec.Overrides = append(v.Spec.Overrides, configv1.ComponentOverride{Kind: "PodDisruptionBudget", Group: "policy", Namespace: namespace, Name: guardName})
		c.must(c.admin.Update(t.Context(), v, client.FieldOwner("oc")))
	})
	l.want(l.look(), patch.Blocked, "FieldOwnedByOther")
	c.guard(3, 1, false)
}

// onFirst has something happen right before the first request of that method.
func (l *looker) onFirst(method string, do func()) {
	var once sync.Once
	l.fuse.Before(func(r *http.Request) {
		if r.Method == method {
			once.Do(do)
		}
	})
}

// What is not known is no reason to remove a guard: a read that fails ends the round, and a topology that is gone or damaged is the
// last one that was known.
func TestInfrastructureCannotBeRead(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	failing := l.fuse.Unreadable
	for _, path := range []string{
		"/infrastructures/", "/nodes", "/deployments/", "/poddisruptionbudgets/", "/clusterversions/", "/etcds/", "/secrets/", "/configmaps/",
	} {
		failing(path)
		mode := sr
		if path == "/nodes" || path == "/secrets/" || path == "/configmaps/" {
			mode = dual // on one node they make no difference
		}
		c.flip(mode) // and nodes and members stay
		c.etcd.set(1, 1)
		if _, err := l.try(); err == nil {
			t.Errorf("%s cannot be read, and it decides all the same", path)
		}
		failing("")
		c.guard(5, 2, true)
		c.become(ha, 5)
		l.atRest()
	}
	c.must(c.admin.Delete(t.Context(), object("config.openshift.io/v1", "Infrastructure", "", "cluster")))
	l.atRest()
	// A new process has never known any.
	l = c.looker()
	l.want(l.look(), patch.Waiting, "WaitingForInfrastructure")
	l.atRest()
	c.guard(5, 2, true)
}

// Between the decision to delete and the request, the topology changes back and the release's budget is touched: the request is bound
// to what was decided on.
func TestDeleteIsBound(t *testing.T) {
	c := install(t, ha, 3)
	c.become(sr, 1)
	l := c.looker()
	l.look()
	c.versionOperator().act()
	l.doing()
	before := c.budget()
	l.onFirst(http.MethodDelete, func() {
		c.become(ha, 3)
		c.edit(budgetObject.Unstructured(), cvo, `{"metadata":{"labels":{"touched":"yes"}}}`)
	})
	l.look()
	if b := c.budget(); b == nil || b.UID != before.UID {
		t.Error("the budget was deleted")
	}
	if did := l.doing(); strings.Contains(did, "Delete") {
		t.Errorf("it did %s", did)
	}
	l.settle()
	c.guard(3, 1, false)
}

// An apply, too: what it was decided on has changed, so nothing is written.
func TestWritesAreBound(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*cluster, *looker)
		touch   func(*cluster)
		never   string
	}{
		"an apply": {
			func(c *cluster, l *looker) { c.become(ha, 5); l.look(); c.versionOperator().act() },
			func(c *cluster) {
				c.become(ha, 3)
				c.edit(deploymentObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
			}, "Apply",
		},
		"a claim": {
			func(c *cluster, _ *looker) { c.become(ha, 5) },
			func(c *cluster) {
				c.become(ha, 3)
				c.edit(versionObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
			}, "Claim",
		},
		"a disowning": {
			func(c *cluster, l *looker) {
				c.become(ha, 5)
				l.settle()
				c.become(ha, 3)
				onlyUntil(c, l, "ApplyDeployment")
			},
			func(c *cluster) {
				c.become(ha, 5)
				c.edit(deploymentObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
			}, "Disown",
		},
		"a tidying": {
			func(c *cluster, l *looker) {
				c.become(ha, 5)
				l.look()
				c.versionOperator().act()
				onlyUntil(c, l, "ApplyBudget")
			},
			func(c *cluster) {
				c.edit(deploymentObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
			}, "Tidy",
		},
		"what was missing": {
			func(c *cluster, l *looker) { c.become(sr, 1); l.settle(); c.become(dual, 2) },
			func(c *cluster) {
				b := manifestBudget()
				*b.Spec.MaxUnavailable = intstr.FromInt32(2)
				c.create(b, "oc")
			}, "ApplyBudget",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.looker()
			test.prepare(c, l)
			l.doing()
			l.onFirst(http.MethodPatch, func() { test.touch(c) })
			l.look()
			if did := l.doing(); strings.HasPrefix(did, test.never) {
				t.Errorf("it did %s", did)
			}
		})
	}
}

// On one node, where everything changes at once, a claim that another module's came before is decided on anew by what that can have
// changed, and nothing else is read again for it.
func TestClaimBesideOthers(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	l.settle()
	c.become(sr, 1)
	read := map[string]int{}
	var reading sync.Mutex
	l.onFirst(http.MethodPatch, func() {
		c.edit(versionObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
		l.fuse.Before(func(r *http.Request) {
			reading.Lock()
			defer reading.Unlock()
			if did := strings.Join(*l.did, " "); r.Method == http.MethodGet && did == "" {
				read[path.Base(r.URL.Path)]++
			}
		})
	})
	l.look()
	if did := l.doing(); did != "Claim" {
		t.Errorf("it did %s", did)
	}
	if diff := cmp.Diff(map[string]int{"version": 1, "cluster": 1}, read); diff != "" {
		t.Errorf("read before the second claim (-want +got):\n%s", diff)
	}
}

// On one node, when the cluster-version-operator answers a claim, all that counts is read again but the guard itself, and what is done to that is bound to what
// was read of it before.
func TestClaimIsAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*cluster)
		does      string
		reads     map[string]int
	}{
		"nothing else": {func(*cluster) {}, "DeleteBudget", map[string]int{"version": 2, "cluster": 3, "etcd-guard-pdb": 1}},
		"the guard": {
			func(c *cluster) {
				c.edit(budgetObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
			}, "DeleteBudget",
			map[string]int{"version": 4, "cluster": 7, "etcd-guard-pdb": 2, "etcd-quorum-guard": 2},
		},
		"the topology":               {func(c *cluster) { c.become(ha, 3) }, "Unclaim", nil},
		"the members":                {func(c *cluster) { c.etcd.set(3, 3) }, "", nil},
		"members that are not known": {func(c *cluster) { c.etcd.set(0, -1) }, "", nil},
		"a person who wants none of it": {func(c *cluster) {
			c.edit(etcdObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
		}, "Unclaim", nil},
		"the entries": {func(c *cluster) { c.edit(versionObject.Unstructured(), "oc", `{"spec":{"overrides":[]}}`) }, "Claim",
			map[string]int{"version": 3, "cluster": 6, "etcd-guard-pdb": 2, "etcd-quorum-guard": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.looker()
			l.settle()
			c.become(sr, 1)
			l.want(l.look(), patch.Progressing, "TakingOver")
			if did := l.doing(); did != "Claim" {
				t.Fatalf("it did %s", did)
			}
			c.versionOperator().act()
			test.meanwhile(c)
			read := map[string]int{}
			var reading sync.Mutex
			l.fuse.Before(func(r *http.Request) {
				reading.Lock()
				defer reading.Unlock()
				if r.Method == http.MethodGet && *l.did == nil {
					read[path.Base(r.URL.Path)]++
				}
			})
			l.look()
			did, _, _ := strings.Cut(l.doing(), " ")
			if did != test.does {
				t.Errorf("it did %s first, want %s", did, test.does)
			}
			if diff := cmp.Diff(test.reads, read); test.reads != nil && diff != "" {
				t.Errorf("read before it did (-want +got):\n%s", diff)
			}
		})
	}
}

// Until the answer to a claim is in the cache nothing is read, unless the cache has something else that counts; and it is not believed for long.
func TestClaimAwaitsItsAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*cluster, *patcher)
		reads     bool
		does      string
	}{
		"nothing":  {func(*cluster, *patcher) {}, false, ""},
		"answered": {func(c *cluster, _ *patcher) { c.versionOperator().act() }, true, "DeleteBudget DeleteDeployment"},
		"another topology": {
			func(c *cluster, _ *patcher) { c.become(ha, 3) }, true, "Unclaim",
		},
		"other entries": {func(c *cluster, _ *patcher) { c.edit(versionObject.Unstructured(), "oc", `{"spec":{"overrides":[]}}`) }, true, "Claim"},
		"what the hint does not tell": {func(c *cluster, _ *patcher) {
			c.edit(etcdObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
		}, false, ""},
		"what the hint does not tell, later": {func(c *cluster, p *patcher) {
			c.edit(etcdObject.Unstructured(), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
			p.believed = time.Now()
		}, true, "Unclaim"},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.looker(func(p *patcher) { p.cache = c.admin })
			l.settle()
			c.become(sr, 1)
			l.want(l.look(), patch.Progressing, "TakingOver")
			if did := l.doing(); did != "Claim" {
				t.Fatalf("it did %s", did)
			}
			test.meanwhile(c, l.patcher)
			var reads atomic.Bool
			l.fuse.Before(func(r *http.Request) {
				if r.Method == http.MethodGet {
					reads.Store(true)
				}
			})
			result := l.look()
			if reads.Load() != test.reads {
				t.Errorf("it reads: %t, want %t", reads.Load(), test.reads)
			}
			if did := l.doing(); did != test.does {
				t.Errorf("it did %q, want %q", did, test.does)
			}
			if !test.reads {
				l.want(result, patch.Progressing, "TakingOver")
				if result.After <= 0 || result.After > breath {
					t.Errorf("it looks again after %s", result.After)
				}
			}
		})
	}
}

// On one node both parts of the guard go on one word of the cluster-version-operator; each write is bound to its own object all the same.
func TestGuardGoesAtOnce(t *testing.T) {
	for name, test := range map[string]struct{ edit, reason string }{
		"nothing changes":                {"", "AsExpected"},
		"somebody writes the Deployment": {`{"metadata":{"labels":{"touched":"yes"}}}`, "AsExpected"},
		"somebody wants none of it":      {`{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`, "OptedOut"},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.looker()
			l.settle()
			c.become(sr, 1)
			l.look()
			c.versionOperator().act()
			var sent []string // from the first deletion to the second
			var sending sync.Mutex
			l.fuse.Before(func(r *http.Request) {
				sending.Lock()
				defer sending.Unlock()
				first := r.Method == http.MethodDelete && len(sent) == 0
				if first || len(sent) == 1 {
					sent = append(sent, r.Method+" "+path.Base(path.Dir(r.URL.Path)))
				}
				if first && test.edit != "" {
					c.edit(deploymentObject.Unstructured(), "oc", test.edit)
				}
			})
			if result := l.settle(); result.Reason != test.reason {
				t.Errorf("%v, want %s", result, test.reason)
			}
			if diff := cmp.Diff([]string{"DELETE poddisruptionbudgets", "DELETE deployments"}, sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if gone := c.deployment() == nil; gone != (test.reason == "AsExpected") {
				t.Errorf("the Deployment is gone: %t", gone)
			}
		})
	}
}

// The topology is not what it was when the claim is refused: the nodes count again, and there is nothing to claim.
func TestTopologyChangesBesideClaim(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	l.settle()
	c.become(sr, 1)
	l.onFirst(http.MethodPatch, func() {
		c.become(ha, 3)
		c.edit(versionObject.Unstructured(), "oc", `{"metadata":{"labels":{"touched":"yes"}}}`)
	})
	l.want(l.look(), patch.NotNeeded, "NotNeeded")
	if did := l.doing(); did != "" {
		t.Errorf("it did %s", did)
	}
}

// What the cache says of the topology is a hint: whatever it is, the same is written.
func TestHintMakesNoDifference(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts members of etcd; make proof runs it")
	}
	for name, mode := range map[string]configv1.TopologyMode{"one node": sr, "three": ha, "arbiter": arbiter, "elsewhere": external, "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			c := install(t, ha, 3)
			l := c.looker(func(p *patcher) { p.cache = hint(mode) })
			for _, stage := range []struct {
				mode configv1.TopologyMode
				n    int
				does string
			}{
				{ha, 5, "Claim ApplyDeployment ApplyBudget TidyDeployment TidyBudget"},
				{sr, 1, "DeleteBudget DeleteDeployment"},
				{arbiter, 3, "ApplyBudget ApplyDeployment"},
				{dual, 2, "ApplyDeployment"},
				{ha, 3, "ApplyDeployment DisownDeployment DisownBudget Unclaim"},
				{external, 0, ""},
			} {
				c.become(stage.mode, stage.n)
				l.settle()
				if does := l.doing(); does != stage.does {
					t.Errorf("%s with %d: %s, want %s", stage.mode, stage.n, does, stage.does)
				}
			}
		})
	}
}

// hint is a cache that has an Infrastructure of that topology for ever, or none.
type hint configv1.TopologyMode

func (h hint) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if h == "" {
		return apierrors.NewNotFound(configv1.Resource("infrastructures"), key.Name)
	}
	u := o.(*unstructured.Unstructured)
	u.SetName(key.Name)
	return unstructured.SetNestedMap(u.Object, map[string]any{
		"controlPlaneTopology": string(h), "infrastructureTopology": "SingleReplica", "platform": "None",
	}, "status")
}

func (hint) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("only the topology is a hint")
}

// On one node nobody reads the nodes.
func TestOneNodeWithoutNodes(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	l.settle()
	c.become(sr, 1)
	l.fuse.Unreadable("/nodes")
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.guard(0, 0, true)
}

// onlyUntil has the controller die right after an action.
func onlyUntil(c *cluster, l *looker, last string) {
	c.Helper()
	for left := 1; ; left++ {
		l.fuse.Blow(left, patchtest.NeverSent)
		_, _ = l.try() // it dies
		l.fuse.Reset()
		if did := strings.Fields(l.doing()); len(did) > 0 && did[len(did)-1] == last {
			return
		}
		if left > 60 {
			c.Fatalf("it never comes to %s", last)
		}
	}
}

// A dry run says at every step what it would do, and writes nothing.
func TestDryRun(t *testing.T) {
	c := install(t, ha, 3)
	l := c.looker()
	dry := c.looker(func(p *patcher) { p.writer.dryRun = true })
	says := func(text string) {
		t.Helper()
		var result patch.Result
		asked := c.server.WritesDuring(t, ourUser, func() { result = dry.look() })
		if result.State != patch.WouldChange || result.Message != "Dry run: "+text {
			t.Errorf("%v, want %s", result, text)
		}
		for _, write := range asked {
			if !strings.Contains(write.URI, "dryRun=All") && write.Verb != "delete" {
				t.Errorf("not a dry run: %s", write)
			}
		}
	}
	c.become(ha, 5)
	says("the cluster-version-operator would be told to let go of the guard, and minor upgrades would wait until that is given back")
	onlyUntil(c, l, "Claim")
	c.versionOperator().act()
	says("the guard would be written")
	onlyUntil(c, l, "ApplyBudget")
	says("annotations of the release would be removed from the guard")
	l.settle()
	c.guard(5, 2, true)
	c.become(sr, 1)
	says("the guard would be removed")
	c.guard(5, 2, true)
	c.become(ha, 3)
	onlyUntil(c, l, "ApplyDeployment")
	says("the guard would be given back, as it is")
	onlyUntil(c, l, "DisownBudget")
	says("the cluster-version-operator would be allowed to write the guard again")
}

// Without its permissions it says what is missing; it asks again, because no watch tells when they come.
func TestForbidden(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.patcher.writer.client = c.server.Client(t, "nobody")
	if result := l.look(); result.Reason != "Forbidden" || !strings.Contains(result.Message, "clusterversions.config.openshift.io") || result.After == 0 {
		t.Errorf("%v, again in %s", result, result.After)
	}
	c.looker().look()
	c.versionOperator().act()
	l.fuse.Reset()
	if result := l.look(); result.Reason != "Forbidden" || !strings.Contains(result.Message, "poddisruptionbudgets.policy in namespace openshift-etcd") {
		t.Error(result)
	}
}

// The deprecated override is reported whatever else there is to say.
func TestDeprecatedOverrideIsReported(t *testing.T) {
	c := install(t, ha, 3)
	c.edit(etcdObject.Unstructured(), "oc", `{"spec":{"unsupportedConfigOverrides":{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd":true}}}`)
	if result := c.looker().look(); result.Reason != "NotNeeded" || !strings.Contains(result.Message, "is deprecated") {
		t.Error(result)
	}
}

// Somebody who writes against us again and again ends the look, and not the patience of the API server.
func TestFightEnds(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	c.edit(budgetObject.Unstructured(), cvo, `{"spec":{"maxUnavailable":4}}`)
	l.fuse.Before(func(r *http.Request) {
		if r.Method == http.MethodPatch {
			b := c.budget()
			b.Labels = map[string]string{"version": b.ResourceVersion}
			c.must(c.admin.Update(context.WithoutCancel(t.Context()), b, client.FieldOwner(cvo)))
		}
	})
	if result := l.look(); result.State != patch.Progressing || result.After != breath {
		t.Errorf("%v, again in %s", result, result.After)
	}
	l.fuse.Reset()
	l.settle()
	c.guard(5, 2, true)
}

// An etcd operator of today that begins to guard: ours goes when its guards are ready.
func TestYieldsToTheOperator(t *testing.T) {
	c := install(t, ha, 5)
	l := c.looker()
	l.settle()
	l.doing()
	b := manifestBudget()
	b.Name, b.Annotations = "etcd-guard-pdb", nil
	b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, ptr.To(*b.Spec.MaxUnavailable)
	c.create(b, "cluster-etcd-operator")
	l.want(l.look(), patch.Progressing, "GivingBack")
	c.guard(5, 2, true)
	c.edit(podsBudgetObject.Unstructured(), "kube-controller-manager",
		`{"status":{"observedGeneration":1,"desiredHealthy":3,"currentHealthy":5,"expectedPods":5,"disruptionsAllowed":2}}`, "status")
	if result := l.look(); result.Reason != "NotNeeded" {
		t.Error(result)
	}
	if got, want := l.doing(), "DeleteBudget DeleteDeployment Unclaim"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
