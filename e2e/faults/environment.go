// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology"
)

// ErrInvariant means that an invariant does not hold.
var ErrInvariant = errors.New("an invariant does not hold")

// errFault means that a fault could not be made.
var errFault = errors.New("cannot make a fault")

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
	scenarioName = "ha"
)

// Options configure the fault runs.
type Options struct {
	// Kills is the number of kills.
	Kills int
	// BadTime is how long the API server is bad.
	BadTime time.Duration
	// Leaders is the number of times with two leaders.
	Leaders int
	// Seed selects the random moments. The same number repeats them.
	Seed uint64
	Keep bool
	// Progress receives a line for each step.
	Progress io.Writer
}

// environment is a cluster with host operators of old releases, whose objects are handed over in both directions.
type environment struct {
	*framework.ScenarioCluster
	options Options
	began   time.Time
	random  *rand.Rand
	etcd    string
	log     Log
	offset  int64
	latest  map[Object]Write
	same    map[string]string // contents of objects by their state
	kept    []Value           // of a person

	single   bool
	forced   bool // a person's placement is taken with --force-conflicts
	optedOut map[framework.Module]bool
	modules  []framework.Module // whose controllers run
	requests int                // of nodes
	started  int                // processes
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
func start(ctx context.Context, o Options) (*environment, error) {
	folder, err := os.MkdirTemp("", "sno-faults-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // the API server has read the file
	policy, err := yaml.Marshal(auditv1.Policy{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"}, Rules: auditRules(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the audit policy: %w", err)
	}
	file := filepath.Join(folder, "policy.yaml")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	if _, err := programs.Build(ctx, programs.KubectlSNO, o.Progress); err != nil {
		return nil, err
	}
	base, err := framework.Start(ctx, framework.Config{
		Scenario: scenarioName, Release: scenario.OldRelease, Progress: o.Progress, VersionOperator: true, QuorumGuard: true, Keep: o.Keep,
		Hosts:     map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
		APIServer: []string{"--audit-policy-file=" + file},
	})
	if err != nil {
		return nil, err
	}
	e := &environment{
		ScenarioCluster: base, options: o, began: time.Now(), random: rand.New(rand.NewPCG(o.Seed, 0)), latest: map[Object]Write{}, same: map[string]string{},
		optedOut: map[framework.Module]bool{},
	}
	if err := e.prepare(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

func (e *environment) prepare(ctx context.Context) error {
	etcd, err := etcdmembers.Start(ctx, e.Cluster, 1)
	if err != nil {
		return err
	}
	e.etcd = etcd.Endpoints[0]
	if err := e.InstallAllControllers(ctx); err != nil {
		return err
	}
	if err := e.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode); err != nil {
		return err
	}
	if err := e.writePersonsValues(ctx); err != nil {
		return err
	}
	if err := e.createWorkload(ctx); err != nil {
		return err
	}
	before, err := e.writes(ctx)
	e.remember(before)
	return err
}

// writePersonsValues writes values of a person next to fields of the modules.
func (e *environment) writePersonsValues(ctx context.Context) error {
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
		body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(write.body)}
		body.SetGroupVersionKind(write.at.gvk)
		body.SetNamespace(write.at.Namespace)
		body.SetName(write.at.Name)
		manager := client.FieldOwner(person)
		if write.body["spec"] == nil {
			manager = client.FieldOwner(person + "-annotation") // an apply replaces the former one
		}
		err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
			if _, err := e.read(ctx, write.at); apierrors.IsNotFound(err) {
				return false, nil // its operator creates it
			}
			err := e.Cluster.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(body), manager)
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("write values of a person to %s: %w", write.at, err)
		}
	}
	e.kept = []Value{
		{versionObject.Object, append(overrideEntry("Deployment", "apps", "example", "example"), field("unmanaged")...), true},
		{ingressObject.Object, field("spec", "tuningOptions", "headerBufferBytes"), int64(40960)},
		{ingressObject.Object, field("metadata", "annotations", ours), person},
		{downloadsObject.Object, field("metadata", "annotations", ours), person},
		{authenticationObject.Object, field("metadata", "annotations", ours), person},
	}
	return nil
}

// createWorkload creates the pods that drains evict: some under a budget that refuses evictions at first.
func (e *environment) createWorkload(ctx context.Context) error {
	if err := e.Cluster.EnsureNamespace(ctx, workload); err != nil {
		return err
	}
	for app, replicas := range map[string]int32{"budgeted": 4, "free": 3} {
		labels := map[string]string{"app": app}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1), NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""},
				Containers: []corev1.Container{{Name: "main", Image: "none"}},
			}},
		}}
		if err := e.Cluster.Client().Create(ctx, deployment); err != nil {
			return fmt.Errorf("create the pods to drain: %w", err)
		}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "budgeted"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "budgeted"}}, MaxUnavailable: ptr.To(intstr.FromInt32(3)),
	}}
	if err := e.Cluster.Client().Create(ctx, budget); err != nil {
		return fmt.Errorf("create the budget: %w", err)
	}
	return nil
}

// waitForWorkload waits until all pods of the workload run.
func (e *environment) waitForWorkload(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		all := &appsv1.DeploymentList{}
		err := e.Cluster.Client().List(ctx, all, client.InNamespace(workload))
		return !slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool {
			return d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas
		}), err
	})
	if err != nil {
		return fmt.Errorf("wait for the pods to drain: %w", err)
	}
	return nil
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
func (e *environment) run(ctx context.Context, name string, program programs.Program, account, lease string, args ...string) (*process, error) {
	binary, err := programs.Build(ctx, program, e.options.Progress)
	if err != nil {
		return nil, err
	}
	proxy, err := StartProxy(name, e.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	kubeconfig, err := e.Cluster.KubeconfigForServiceAccount(ctx, framework.SystemNamespace, account)
	if err == nil {
		kubeconfig, err = proxy.Kubeconfig(kubeconfig)
	}
	if err != nil {
		proxy.Stop()
		return nil, err
	}
	all := append(args, "--kubeconfig", kubeconfig, "--leader-elect-resource-namespace", framework.SystemNamespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	p := &process{Proxy: proxy, name: name, lease: lease, mark: proxy.NextRun()}
	p.component, err = e.Cluster.RunProcess(ctx, embedded.Process{Name: name, Path: binary, Args: all, Ended: framework.StartAgain(ctx)})
	if err != nil {
		proxy.Stop()
		return nil, err
	}
	return p, nil
}

// runAll starts kubectl-sno with all modules.
func (e *environment) runAll(ctx context.Context, name string) (*process, error) {
	return e.run(ctx, name, programs.KubectlSNO, framework.AllAccount, framework.AllLease,
		"run", "--etcd-endpoints="+e.etcd, drainTimeout, "-v=1")
}

// restart starts a process that was killed. Its Lease, which nobody renews, is released, as a person could: it would
// expire after up to 270 s.
func (e *environment) restart(ctx context.Context, p *process) error {
	if err := e.releaseLease(ctx, p.lease); err != nil {
		return err
	}
	p.mark = p.NextRun()
	return p.component.Start(ctx)
}

func (e *environment) releaseLease(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: name}}
	err := e.Cluster.Client().Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`)))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release the Lease %s: %w", name, err)
	}
	return nil
}

// end ends a process with SIGTERM and its proxy.
func (e *environment) end(ctx context.Context, p *process) error {
	err := p.component.Terminate(ctx)
	p.Stop()
	return err
}

// leaseProblem returns what is wrong with the Lease, which the process must hold with the durations of the topology, or
// nothing.
func (e *environment) leaseProblem(ctx context.Context, p *process) (string, error) {
	lease := &coordinationv1.Lease{}
	err := e.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: p.lease}, lease)
	if err != nil {
		return "there is no Lease " + p.lease, client.IgnoreNotFound(err)
	}
	want := int32(topology.LeaderElection(e.mode()).LeaseDuration / time.Second)
	if got := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); ptr.Deref(lease.Spec.HolderIdentity, "") == "" || got != want {
		return fmt.Sprintf("the Lease %s has the holder %q and %d s, want %d s", p.lease, ptr.Deref(lease.Spec.HolderIdentity, ""), got, want), nil
	}
	return "", nil
}

func (e *environment) mode() configv1.TopologyMode {
	if e.single {
		return configv1.SingleReplicaTopologyMode
	}
	return configv1.HighlyAvailableTopologyMode
}

// ours reports whether a controller made a write.
func ours(w Write) bool {
	return strings.HasPrefix(w.User, "system:serviceaccount:"+framework.SystemNamespace+":")
}

// writes returns the writes since the last call.
func (e *environment) writes(ctx context.Context) ([]Write, error) {
	events, next, err := e.Cluster.AuditEvents(ctx, e.offset, embedded.AuditFilter{WritesOnly: true})
	if err != nil {
		return nil, err
	}
	e.offset = next
	return e.log.Add(events)
}

// logf prints a line of progress.
func (e *environment) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.options.Progress, "%5.1fs  "+format+"\n", append([]any{time.Since(e.began).Seconds()}, args...)...)
}

// waitSettled waits until the controllers have done what the cluster needs and request nothing any more. It returns how
// long that took. interrupted, which may be nil, ends the wait.
func (e *environment) waitSettled(ctx context.Context, interrupted <-chan struct{}, also func(context.Context) (string, error), processes ...*process) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	last := ""
	for {
		now, err := e.problem(ctx, also, processes)
		if err == nil && now == "" {
			quiet := settleTimeout
			for _, p := range processes {
				quiet = min(quiet, p.Quiet())
			}
			if quiet >= quietTime {
				return max(time.Since(began)-quiet, 0), nil
			}
			now = "requests are still being sent"
		}
		if err == nil {
			last = now
		}
		select {
		case <-interrupted:
			return 0, errInterrupted
		case <-ctx.Done():
			return 0, fmt.Errorf("%w within %s: %s: %w", framework.ErrNotSettled, settleTimeout, last, errors.Join(err, ctx.Err()))
		case <-time.After(poll):
		}
	}
}

var errInterrupted = errors.New("interrupted")

// problem returns what is not as it should be, or nothing.
func (e *environment) problem(ctx context.Context, also func(context.Context) (string, error), processes []*process) (string, error) {
	for _, p := range processes {
		if text, err := e.leaseProblem(ctx, p); err != nil || text != "" {
			return text, err
		}
	}
	for _, module := range e.modules {
		condition, err := e.Condition(ctx, module)
		if err != nil {
			return "", err
		}
		if want := e.reasons(module); !slices.Contains(want, condition.Reason) {
			return fmt.Sprintf("%s, want one of %v", condition, want), nil
		}
	}
	if also != nil {
		if text, err := also(ctx); err != nil || text != "" {
			return text, err
		}
	}
	violations, err := e.checkObjects(ctx, nil)
	if err != nil || len(violations) == 0 {
		return "", err
	}
	return violations[0].String(), nil
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

// check checks the writes since the last change of the cluster, which all have settled.
func (e *environment) check(ctx context.Context, writes []Write) ([]Violation, error) {
	var version *unstructured.Unstructured
	if before, is := e.latest[ClusterVersion]; is {
		version = before.Result
	}
	found := slices.Concat(
		WrittenTwice(writes, ours), EvictedTwice(writes, ours), Kept(writes, e.kept...), OneWriter(version, writes, ours, claims()...),
	)
	live, err := e.checkObjects(ctx, writes)
	if err != nil {
		return nil, err
	}
	e.remember(writes)
	return append(found, live...), nil
}
