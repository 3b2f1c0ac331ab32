// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology"
)

const (
	poll = 50 * time.Millisecond
	// settleTimeout bounds the time until everything has its final state after a fault.
	settleTimeout = 5 * time.Minute
	// quietTime is how long a settled controller has requested nothing. It exceeds the delay of reports.
	quietTime = 800 * time.Millisecond
	// restTime is how long nothing must be written at rest.
	restTime     = 5 * time.Second
	drainTimeout = "--drain-timeout=20s"
	workload     = "workload"
	person       = "a-person"
	// logTail is how much of a log a failure has.
	logTail = 4000
)

// environment is a cluster with host operators of old releases, whose objects are handed over in both directions.
type environment struct {
	*framework.ScenarioCluster
	progress io.Writer
	began    time.Time
	random   *rand.Rand
	etcd     string // an argument
	log      Log
	offset   int64
	latest   map[Object]Write
	same     map[string]string // contents of objects by their state
	kept     []Value           // of a person

	single   bool
	forced   bool // a person's placement is taken with --force-conflicts
	optedOut map[framework.Module]bool
	modules  []framework.Module // whose controllers run
	requests int                // of nodes
	started  int                // processes
	tally    tally
}

// auditRules record the bodies of writes of all objects that matter, and of those only.
func auditRules() []auditv1.PolicyRule {
	writes := slices.Clone(writeVerbs)
	return []auditv1.PolicyRule{
		{Level: auditv1.LevelMetadata, Verbs: writes, Resources: []auditv1.GroupResources{
			{Group: "coordination.k8s.io"}, {Group: "events.k8s.io"}, {Group: "authentication.k8s.io"}, {Group: "authorization.k8s.io"},
			{Group: "discovery.k8s.io"}, {Group: "apps", Resources: []string{"replicasets"}},
			{Group: "", Resources: []string{"events", "pods", "pods/status", "pods/binding", "nodes/status", "endpoints", "secrets", "serviceaccounts", "serviceaccounts/token"}},
		}},
		{Level: auditv1.LevelRequestResponse, Verbs: writes},
		{Level: auditv1.LevelNone},
	}
}

// start starts the cluster with one node less than it has topologies: the topology changes, the nodes do not.
func start(ctx context.Context, progress io.Writer) *environment {
	GinkgoHelper()
	policy := filepath.Join(GinkgoT().TempDir(), "policy.yaml")
	Expect(os.WriteFile(policy, suite.Must(yaml.Marshal(auditv1.Policy{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"}, Rules: auditRules(),
	})), 0o600)).To(Succeed())
	suite.Must(programs.Build(ctx, programs.KubectlSNO, progress))
	e := &environment{
		progress: progress, began: time.Now(), random: rand.New(rand.NewPCG(*seed, 0)), latest: map[Object]Write{}, same: map[string]string{}, //nolint:gosec // to repeat it
		optedOut: map[framework.Module]bool{}, tally: tally{byMode: map[string]int{}, byChange: map[string]int{}},
		ScenarioCluster: suite.Must(framework.Start(ctx, framework.Config{
			Scenario: "ha", Release: scenario.OldRelease, Progress: progress, VersionOperator: true, QuorumGuard: true, Keep: suite.Keep(),
			Hosts:     map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
			APIServer: []string{"--audit-policy-file=" + policy},
		})),
	}
	DeferCleanup(e.Stop)
	e.etcd = "--etcd-endpoints=" + suite.Must(etcdmembers.Start(ctx, e.Cluster, 1)).Endpoints[0]
	Expect(e.InstallAllControllers(ctx)).To(Succeed())
	Expect(e.SetTopology(ctx, e.mode(), e.mode())).To(Succeed())
	e.writePersonsValues(ctx)
	e.createWorkload(ctx)
	e.remember(e.writes(ctx))
	return e
}

// writePersonsValues writes values of a person next to fields of the modules.
func (e *environment) writePersonsValues(ctx context.Context) {
	GinkgoHelper()
	const ours = "example.com/owner"
	entry := map[string]any{"kind": "Deployment", "group": "apps", "namespace": "example", "name": "example", "unmanaged": true}
	annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{ours: person}}}
	for _, write := range []struct {
		at   patchedObject
		body map[string]any
	}{
		{versionObject, map[string]any{"spec": map[string]any{"overrides": []any{entry}}}},
		{ingressObject, map[string]any{"spec": map[string]any{"tuningOptions": map[string]any{"headerBufferBytes": int64(40960)}}}},
		{ingressObject, annotated}, {downloadsObject, annotated}, {authenticationObject, annotated},
	} {
		body := write.at.empty()
		maps.Copy(body.Object, runtime.DeepCopyJSON(map[string]any{"spec": write.body["spec"]}))
		manager := client.FieldOwner(person)
		if write.body["spec"] == nil {
			delete(body.Object, "spec")
			body.SetAnnotations(map[string]string{ours: person})
			manager = client.FieldOwner(person + "-annotation") // an apply replaces the former one
		}
		Eventually(ctx, func(ctx context.Context) error {
			if _, err := e.read(ctx, write.at); err != nil {
				return err // its operator creates it
			}
			return e.Cluster.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(body), manager)
		}).WithTimeout(settleTimeout).WithPolling(poll).Should(Succeed())
	}
	e.kept = []Value{
		{versionObject.Object, append(overrideEntry("Deployment", "apps", "example", "example"), field("unmanaged")...), true},
		{ingressObject.Object, field("spec", "tuningOptions", "headerBufferBytes"), int64(40960)},
		{ingressObject.Object, field("metadata", "annotations", ours), person},
		{downloadsObject.Object, field("metadata", "annotations", ours), person},
		{authenticationObject.Object, field("metadata", "annotations", ours), person},
	}
}

// createWorkload creates the pods that drains evict: some under a budget that refuses evictions at first.
func (e *environment) createWorkload(ctx context.Context) {
	GinkgoHelper()
	Expect(e.Cluster.EnsureNamespace(ctx, workload)).To(Succeed())
	for app, replicas := range map[string]int32{"budgeted": 4, "free": 3} {
		labels := map[string]string{"app": app}
		Expect(e.Cluster.Client().Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1), NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""},
				Containers: []corev1.Container{{Name: "main", Image: "none"}},
			}},
		}})).To(Succeed())
	}
	Expect(e.Cluster.Client().Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "budgeted"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "budgeted"}}, MaxUnavailable: ptr.To(intstr.FromInt32(3)),
	}})).To(Succeed())
}

// waitForWorkload waits until all pods of the workload run.
func (e *environment) waitForWorkload(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		all := &appsv1.DeploymentList{}
		g.Expect(e.Cluster.Client().List(ctx, all, client.InNamespace(workload))).To(Succeed())
		for _, d := range all.Items {
			g.Expect(d.Status.ObservedGeneration).To(BeNumerically(">=", d.Generation))
			g.Expect([]int32{d.Status.AvailableReplicas, d.Status.Replicas}).To(HaveEach(*d.Spec.Replicas), "pods of Deployment %s", d.Name)
		}
	}).WithTimeout(settleTimeout).WithPolling(poll).Should(Succeed())
}

// process is a controller behind a proxy.
type process struct {
	*Proxy
	name      string
	lease     string
	component *embedded.Component
	mark      string // of its present run
}

// run starts a controller with all modules or with one.
func (e *environment) run(ctx context.Context, program programs.Program, account, lease string, args ...string) *process {
	GinkgoHelper()
	e.started++
	name := fmt.Sprintf("%s-%d", program.Name, e.started)
	proxy := suite.Must(StartProxy(name, e.Cluster.RESTConfig()))
	kubeconfig := suite.Must(proxy.Kubeconfig(suite.Must(e.Cluster.KubeconfigForServiceAccount(ctx, framework.SystemNamespace, account))))
	p := &process{Proxy: proxy, name: name, lease: lease, mark: proxy.NextRun()}
	p.component = suite.Must(e.Cluster.RunProcess(ctx, embedded.Process{
		Name: name, Path: suite.Must(programs.Build(ctx, program, e.progress)), Ended: framework.StartAgain(ctx),
		Args: append(args, "--kubeconfig", kubeconfig,
			"--leader-elect-resource-namespace", framework.SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"),
	}))
	return p
}

// runAll starts kubectl-sno with all modules.
func (e *environment) runAll(ctx context.Context) *process {
	GinkgoHelper()
	e.modules = framework.AllModules()
	return e.run(ctx, programs.KubectlSNO, framework.AllAccount, framework.AllLease, "run", e.etcd, drainTimeout, "-v=1")
}

// settledAll starts kubectl-sno and waits until it has settled.
func (e *environment) settledAll(ctx context.Context) *process {
	GinkgoHelper()
	p := e.runAll(ctx)
	e.undisturbed(ctx, p, change{name: "start", make: func(context.Context) {}})
	return p
}

// restart starts a process that was killed. Its Lease, which nobody renews, is released, as a person could: it would
// expire after up to 270 s.
func (e *environment) restart(ctx context.Context, p *process) {
	GinkgoHelper()
	e.releaseLease(ctx, p.lease)
	p.mark = p.NextRun()
	Expect(p.component.Start(ctx)).To(Succeed())
}

func (e *environment) releaseLease(ctx context.Context, name string) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: name}}
	err := e.Cluster.Client().Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`)))
	Expect(client.IgnoreNotFound(err)).To(Succeed())
}

// end ends a process with SIGTERM and its proxy.
func (e *environment) end(ctx context.Context, p *process) {
	GinkgoHelper()
	Expect(p.component.Terminate(ctx)).To(Succeed())
	p.Stop()
}

func (e *environment) readLease(ctx context.Context, p *process) (holder string, seconds int32, err error) {
	lease := &coordinationv1.Lease{}
	err = e.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: p.lease}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseDurationSeconds, 0), err
}

// holder returns the holder of the Lease of a process.
func (e *environment) holder(ctx context.Context, p *process) string {
	GinkgoHelper()
	holder, _, err := e.readLease(ctx, p)
	Expect(err).NotTo(HaveOccurred())
	Expect(holder).NotTo(BeEmpty())
	return holder
}

func (e *environment) mode() configv1.TopologyMode {
	if e.single {
		return configv1.SingleReplicaTopologyMode
	}
	return configv1.HighlyAvailableTopologyMode
}

// writes returns the writes since the last call.
func (e *environment) writes(ctx context.Context) []Write {
	GinkgoHelper()
	events, next, err := e.Cluster.AuditEvents(ctx, e.offset, embedded.AuditFilter{WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	e.offset = next
	return suite.Must(e.log.Add(events))
}

// logf prints a line of progress.
func (e *environment) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.progress, "%5.1fs  "+format+"\n", append([]any{time.Since(e.began).Seconds()}, args...)...)
}

// waitSettled waits until the controllers have done what the cluster needs and request nothing any more, and returns how
// long that took. done, if not nil, returns what else is missing. The closed channel fired ends the wait.
func (e *environment) waitSettled(
	ctx context.Context, what string, done func(context.Context) (string, error), fired <-chan struct{}, processes ...*process,
) (settled time.Duration, interrupted bool) {
	GinkgoHelper()
	began := time.Now()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		select {
		case <-fired:
			interrupted = true
			return "", nil
		default:
		}
		problem, err := e.problem(ctx, done, processes)
		quiet := settleTimeout
		for _, p := range processes {
			quiet = min(quiet, p.Quiet())
		}
		if problem == "" && quiet < quietTime {
			problem = "requests are still being sent"
		}
		settled = max(time.Since(began)-quiet, 0)
		return problem, err
	}).WithTimeout(settleTimeout).WithPolling(poll).Should(BeEmpty(), func() string { return what + " does not settle\n" + processes[0].component.LogTail(logTail) })
	return settled, interrupted
}

// problem returns what is not as it should be, or nothing.
func (e *environment) problem(ctx context.Context, done func(context.Context) (string, error), processes []*process) (string, error) {
	for _, p := range processes {
		holder, seconds, err := e.readLease(ctx, p)
		if want := int32(topology.LeaderElection(e.mode()).LeaseDuration / time.Second); err != nil || holder == "" || seconds != want {
			return fmt.Sprintf("the Lease %s has the holder %q and %d s, want %d s", p.lease, holder, seconds, want), client.IgnoreNotFound(err)
		}
	}
	for _, module := range e.modules {
		condition, err := e.Condition(ctx, module)
		if want := e.reasons(module); err != nil || !slices.Contains(want, condition.Reason) {
			return fmt.Sprintf("%s, want one of %v", condition, want), err
		}
	}
	if done != nil {
		if text, err := done(ctx); err != nil || text != "" {
			return text, err
		}
	}
	violations, err := e.checkObjects(ctx, nil)
	if err != nil || len(violations) == 0 {
		return "", err
	}
	return violations[0].String(), nil
}

// read reads an object; nil if it does not exist.
func (e *environment) read(ctx context.Context, o patchedObject) (*unstructured.Unstructured, error) {
	live := o.empty()
	if err := e.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}
	return live, nil
}

// reasons returns the final reasons of a module.
func (e *environment) reasons(module framework.Module) []string {
	const asExpected, notNeeded, optedOut = "AsExpected", "NotNeeded", "OptedOut"
	switch {
	case e.optedOut[module] && module == framework.Auth:
		return []string{asExpected, optedOut} // its Deployments are not opted out
	case e.optedOut[module] && e.single:
		return []string{optedOut}
	case e.optedOut[module]:
		return []string{optedOut, notNeeded}
	case module == framework.Auth, module == framework.MachineConfig, e.single:
		return []string{asExpected}
	}
	return []string{notNeeded}
}

// inForce reports whether a module's patch is in force.
func (e *environment) inForce(module framework.Module) bool { return e.single && !e.optedOut[module] }

// checkObjects checks the live objects. writes are those since the last check.
func (e *environment) checkObjects(ctx context.Context, writes []Write) ([]Violation, error) {
	var found []Violation
	for _, o := range patchedObjects() {
		if !slices.Contains(e.modules, o.module) {
			continue
		}
		live, err := e.read(ctx, o)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		inForce := e.inForce(o.module)
		switch {
		case inForce && o.deleted && live != nil:
			found = append(found, Violation{InvariantSame, fmt.Sprintf("%s exists", o)})
		case inForce && o.deleted:
		case live == nil && (inForce || !o.optional):
			found = append(found, Violation{InvariantSame, fmt.Sprintf("%s does not exist", o)})
		case live == nil:
		case inForce:
			found = append(found, Owned(live, string(o.module), o.fields...)...)
		default:
			found = append(found, Released(live, string(o.module))...)
			if e.forced && o.Object == placement.Object {
				found = append(found, Restored(live, person, placement)...)
			}
		}
		if live == nil || len(found) > 0 {
			continue
		}
		history := writes[:0:0]
		if before, is := e.latest[o.Object]; is {
			history = append(history, before)
		}
		for _, w := range writes {
			if w.Object == o.Object {
				history = append(history, w)
			}
		}
		found = append(found, Orphans(history, live, string(o.module))...)
		if writes == nil {
			continue
		}
		text := contentOf(live)
		state := fmt.Sprintf("%s, single node %t, in force %t, forced %t", o.Object, e.single, inForce, e.forced)
		if o.Object == ClusterVersion {
			state += fmt.Sprintf(", opted out %v, controllers of %v", slices.Sorted(maps.Keys(e.optedOut)), e.modules)
		}
		if first, is := e.same[state]; is && first != text {
			found = append(found, Violation{InvariantSame, fmt.Sprintf("%s: %s, was %s", state, text, first)})
		}
		e.same[state] = text
	}
	return found, nil
}

// remember records the last version of each patched object.
func (e *environment) remember(writes []Write) {
	for _, w := range writes {
		if w.Effective && w.Result != nil {
			e.latest[w.Object] = w
		}
	}
}

// conclude checks the writes since the last change of the cluster, which all have settled, and the live objects. Some
// checks are only of this change.
func (e *environment) conclude(ctx context.Context, what string, also ...func([]Write) []Violation) []Write {
	GinkgoHelper()
	writes := e.writes(ctx)
	var version *unstructured.Unstructured
	if before, is := e.latest[ClusterVersion]; is {
		version = before.Result
	}
	found := slices.Concat(WrittenTwice(writes), EvictedTwice(writes), Kept(writes, e.kept...), OneWriter(version, writes, claims()...))
	found = append(found, suite.Must(e.checkObjects(ctx, writes))...)
	e.remember(writes)
	for _, check := range also {
		if check != nil {
			found = append(found, check(writes)...)
		}
	}
	if len(found) > 0 {
		Fail(fmt.Sprintf("An invariant does not hold after %s:\n%s\nwrites:\n%s", what, texts(found), listing(writes)))
	}
	return writes
}

func listing(writes []Write) string {
	var text string
	for _, w := range writes {
		if w.ours() && !isReport(w) {
			text += fmt.Sprintf("  %s, version %d, effective %t: %.400s\n", w, w.Version, w.Effective, w.content())
		}
	}
	return text
}
