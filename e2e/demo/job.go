// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrVerificationFailed means that the router was in the wrong place or number.
var ErrVerificationFailed = errors.New("the proof did not hold")

// Options configure a run.
type Options struct {
	Scenario string
	// Operators are hosts instead of the stand-ins.
	Operators framework.Operators
	// Once ends after the proof. Otherwise the cluster stays up until ctx ends.
	Once bool
	Out  io.Writer
	Keep bool
	// OnReady, if not nil, is called with a cluster that stays up.
	OnReady func(*embedded.Cluster)
}

const (
	masterLabel = "node-role.kubernetes.io/master"
	workerLabel = "node-role.kubernetes.io/worker"

	// restarts is how often the router's pod is deleted, before and after.
	restarts              = 5
	asExpected, notNeeded = "AsExpected", "NotNeeded"
)

type job struct {
	options  Options
	scenario scenario.Scenario
	env      *framework.ScenarioCluster
	kube     client.Client
	router   router
}

// Run runs the main job. It returns an error that wraps ErrVerificationFailed if the proof fails. After the proof the
// end of ctx is not an error.
func Run(ctx context.Context, options Options) error {
	s, err := scenario.Lookup(options.Scenario)
	if err != nil {
		return err
	}
	options.Out = &synchronized{out: options.Out}
	j := &job{options: options, scenario: s}
	j.heading("sno: the cluster operators on %s", s.Name)
	j.printf("  %s", s.Description)
	j.printf("  %s", j.expectation())
	j.printf("  %s", j.operandsExpectation())
	if err := j.start(ctx); err != nil {
		return err
	}
	defer j.env.Stop()
	if err := j.env.WhileOperatorsRun(ctx, j.prove); err != nil {
		if errors.Is(err, framework.ErrOperatorEnded) {
			return err
		}
		j.printf("\nThe proof did not hold: %v", err)
		j.logs()
		return err
	}
	j.printf("\nThe proof held.")
	for _, line := range report.OperatorLines(report.Report{Operators: j.env.HostOperators()}) {
		j.printf("  %s", line)
	}
	if options.Once {
		return nil
	}
	return j.stay(ctx)
}

// stay keeps the cluster up until ctx ends.
func (j *job) stay(ctx context.Context) error {
	if err := j.env.UseRealMinReadySeconds(ctx); err != nil {
		return err
	}
	j.heading("The cluster stays up until Ctrl-C")
	j.printf("  export KUBECONFIG=%s", j.env.Cluster.KubeconfigPath())
	j.printf("  kubectl get pods -A -o wide --watch")
	j.printf("  kubectl patch infrastructure cluster --subresource status --type merge -p '{\"status\":{\"controlPlaneTopology\":\"HighlyAvailable\",\"infrastructureTopology\":\"HighlyAvailable\"}}'")
	j.printf("  Log of the controllers: %s", j.env.Cluster.Program(programs.KubectlSNO.Name).LogPath())
	if j.options.OnReady != nil {
		j.options.OnReady(j.env.Cluster)
	}
	<-ctx.Done()
	j.printf("\nStopping the cluster")
	return nil
}

// printf prints a line. A closed terminal ends the process by a signal, so errors are ignored.
func (j *job) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(j.options.Out, format+"\n", args...)
}

func (j *job) heading(format string, args ...any) { j.printf("\n"+format, args...) }

func (j *job) expectation() string {
	if j.scenario.Pool == scenario.PoolNone {
		return "Expected: no default router, since the control plane is external"
	}
	return fmt.Sprintf("Expected: %d router(s) on pool %s", j.scenario.Replicas, j.scenario.Pool)
}

// start builds the programs and starts the cluster with the host operators.
func (j *job) start(ctx context.Context) error {
	j.heading("Build and start")
	err := programs.BuildAll(ctx, indent{j.options.Out}, programs.KubectlSNO, programs.IngressHost, programs.ConsoleHost, programs.AuthHost, programs.EtcdHost)
	if err != nil {
		return err
	}
	// A stock ingress operator, and operators that vendor the modules. With a single node, downloads comes from a static
	// manifest, as in old releases, for the module to take over. Otherwise the module would not change that manifest,
	// which has no pool and cannot be rolled out on two nodes. A given operator has downloads itself.
	manifest := j.scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode && !j.options.Operators.Has(framework.Console)
	j.env, err = framework.Start(ctx, framework.Config{
		Scenario: j.scenario.Name, Progress: indent{j.options.Out}, Keep: j.options.Keep, VersionOperator: manifest, Operators: j.options.Operators,
		Hosts: map[framework.Module][]string{
			framework.Ingress: {"--stock"}, framework.Console: {"--downloads=" + strconv.FormatBool(!manifest)}, framework.Auth: nil,
		},
	})
	if err != nil {
		return err
	}
	// As on every OpenShift cluster, nodes may request to join.
	if err := framework.PrepareJoining(ctx, j.env.Cluster); err != nil {
		j.env.Stop()
		return err
	}
	later := j.givenLater()
	// The etcd operator creates guards of the members.
	if !slices.Contains(later, framework.EtcdGuard) && j.scenario.ControlPlaneTopology != configv1.ExternalTopologyMode {
		later = append(later, framework.EtcdGuard)
	}
	for _, module := range later {
		if err := j.env.RunHost(ctx, module, "--stock"); err != nil {
			j.env.Stop()
			return err
		}
	}
	j.kube = j.env.Cluster.Client()
	j.router = router{kube: j.kube}
	return nil
}

// givenLater returns the modules of given operators whose hosts run only if they are given. An external control plane
// has no etcd operator in the cluster.
func (j *job) givenLater() []framework.Module {
	return slices.DeleteFunc(j.options.Operators.Modules(), func(m framework.Module) bool {
		return slices.Contains(framework.Modules(), m) || m == framework.EtcdGuard && j.scenario.ControlPlaneTopology == configv1.ExternalTopologyMode
	})
}

func (j *job) prove(ctx context.Context) error {
	var before map[patched]*unstructured.Unstructured
	read := func(ctx context.Context) (err error) {
		before, err = j.read(ctx)
		return err
	}
	changed := func(ctx context.Context) error {
		after, err := j.read(ctx)
		if err != nil {
			return err
		}
		return j.showChanges(before, after)
	}
	steps := []func(context.Context) error{
		j.before, j.operandsBefore, read, j.runControllers, j.decided, j.operandsDecided, j.besideGiven, changed, j.after, j.operandsAfter, j.noneIdle,
	}
	if j.scenario.Pool == scenario.PoolNone {
		steps = []func(context.Context) error{
			j.operandsBefore, read, j.runControllers, j.nothingToRoute, j.operandsDecided, j.besideGiven, changed, j.operandsAfter, j.noneIdle,
		}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// noneIdle returns an error if a given operator has done nothing.
func (j *job) noneIdle(ctx context.Context) error {
	idle, err := j.env.IdleOperators(ctx)
	if err == nil && len(idle) > 0 {
		err = fmt.Errorf("%w: given operators that have written no Lease, status or operand: %v", ErrVerificationFailed, idle)
	}
	return err
}

func (j *job) before(ctx context.Context) error {
	j.heading("Before: the stock operator's router")
	places, err := j.router.settled(ctx, "", j.scenario.PendingUntilDay2)
	if err != nil {
		return err
	}
	j.showPlaces(0, places)
	if waiting := j.scenario.PendingUntilDay2; waiting > 0 {
		j.printf("  %d router(s) Pending: no other node takes it until another worker joins", waiting)
	}
	if j.scenario.Day2Workers > 0 {
		if err := j.scenario.AddDay2Workers(ctx, j.env.Cluster); err != nil {
			return err
		}
		j.printf("  %d worker(s) joined", j.scenario.Day2Workers)
		if j.scenario.PendingUntilDay2 > 0 {
			if places, err = j.router.settled(ctx, "", 0); err != nil {
				return err
			}
			j.showPlaces(0, places)
		}
	}
	floated := offPool(places, scenario.PoolMaster)
	for i := 1; i <= restarts && !floated; i++ {
		if places, err = j.router.restart(ctx, places[0]); err != nil {
			return err
		}
		j.showPlaces(i, places)
		floated = offPool(places, scenario.PoolMaster)
	}
	switch hasWorkers := j.scenario.Day1Workers+j.scenario.Day2Workers > 0; {
	case j.scenario.Pool != scenario.PoolMaster:
		j.printf("  That is where it belongs on this cluster.")
	case floated:
		j.printf("  The router left the control plane. DNS still points there: ingress is down.")
	case hasWorkers:
		return fmt.Errorf("%w: the router never left the control plane without the controller, so staying there would prove nothing", ErrVerificationFailed)
	default:
		j.printf("  There is no other node it could float to.")
	}
	return nil
}

// runControllers starts the controllers of the operands, and those of given operators, in one process, with the rights
// of an installation.
func (j *job) runControllers(ctx context.Context) error {
	j.heading("Start the controllers")
	var names []string
	for _, module := range append(framework.Modules(), j.givenLater()...) {
		names = append(names, string(module))
	}
	_, err := j.env.RunAllControllers(ctx, "--modules="+strings.Join(names, ","))
	return err
}

func (j *job) decided(ctx context.Context) error {
	condition, err := j.env.WaitReason(ctx, framework.Ingress, settleTimeout, asExpected, notNeeded)
	if err != nil {
		_, settleErr := j.router.settled(ctx, "", 0)
		return fmt.Errorf("%w: %w", ErrVerificationFailed, errors.Join(err, settleErr))
	}
	j.printf("  %s", condition)
	return nil
}

// besideGiven waits until each controller that runs for a given operator only has reported, and prints its condition.
// Which one it is depends on the operator.
func (j *job) besideGiven(ctx context.Context) error {
	for _, module := range j.givenLater() {
		if j.scenario.ControlPlaneTopology == configv1.ExternalTopologyMode && module == framework.Approver {
			continue // there is no object for its condition
		}
		var condition framework.Condition
		err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
			now, err := j.env.Condition(ctx, module)
			condition = now
			return condition.Status != "", err
		})
		if err != nil {
			return fmt.Errorf("%w: the controller of %s reports nothing: %w", ErrVerificationFailed, module, err)
		}
		j.printf("  %s", condition)
	}
	return nil
}

// after deletes the router's pod repeatedly. It must return to its place, also after ordinary workloads are excluded
// from the control plane.
func (j *job) after(ctx context.Context) error {
	j.heading("After: the same router")
	places, err := j.router.settled(ctx, "", 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
	}
	for i := 0; ; i++ {
		j.showPlaces(i, places)
		if err := check(j.scenario, places); err != nil {
			return err
		}
		if i == restarts {
			return nil
		}
		if i == restarts/2 && j.scenario.Pool == scenario.PoolMaster && j.scenario.MastersSchedulable {
			if err := j.taintControlPlane(ctx); err != nil {
				return err
			}
			j.printf("  mastersSchedulable is now false: the control plane has its NoSchedule taint and is no worker any more")
		}
		if places, err = j.router.restart(ctx, places[i%len(places)]); err != nil {
			return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
		}
	}
}

// taintControlPlane does what the machine-config operator does when an administrator sets mastersSchedulable to false.
func (j *job) taintControlPlane(ctx context.Context) error {
	var scheduler configv1.Scheduler
	if err := j.kube.Get(ctx, client.ObjectKey{Name: scenario.ClusterName}, &scheduler); err != nil {
		return fmt.Errorf("read the Scheduler: %w", err)
	}
	patch := client.MergeFrom(scheduler.DeepCopy())
	scheduler.Spec.MastersSchedulable = false
	if err := j.kube.Patch(ctx, &scheduler, patch); err != nil {
		return fmt.Errorf("set mastersSchedulable: %w", err)
	}
	var nodes corev1.NodeList
	if err := j.kube.List(ctx, &nodes, client.HasLabels{masterLabel}); err != nil {
		return fmt.Errorf("list the control plane: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		patch := client.MergeFrom(node.DeepCopy())
		delete(node.Labels, workerLabel)
		taint := corev1.Taint{Key: masterLabel, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
		if err := j.kube.Patch(ctx, node, patch); err != nil {
			return fmt.Errorf("taint node %s: %w", node.Name, err)
		}
	}
	return nil
}

// nothingToRoute checks that the controller writes nothing with an external control plane, which has no default
// IngressController.
func (j *job) nothingToRoute(ctx context.Context) error {
	if err := j.controllerSynced(ctx); err != nil {
		return err
	}
	events, _, err := j.env.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{
		User: framework.AllUser, Resource: "ingresscontrollers", WritesOnly: true,
	})
	if err != nil {
		return err
	}
	if len(events) > 0 {
		return fmt.Errorf("%w: the controller wrote %d time(s) although there is nothing to do", ErrVerificationFailed, len(events))
	}
	j.printf("  The ingress controller is up and wrote nothing: there is no default router.")
	return nil
}

// controllerSynced waits until the controller leads and watches IngressControllers, so that it could act.
func (j *job) controllerSynced(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		leases, err := j.env.Cluster.Clientset().CoordinationV1().Leases(framework.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		leads := slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool {
			return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
		})
		events, _, err := j.env.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: framework.AllUser, Resource: "ingresscontrollers"})
		watches := slices.ContainsFunc(events, func(e auditv1.Event) bool { return e.Verb == "watch" })
		return leads && watches, err
	})
	if err != nil {
		return fmt.Errorf("%w: the controller does not watch the cluster: %w", ErrVerificationFailed, err)
	}
	return nil
}

func (j *job) showPlaces(deleted int, places []place) {
	for _, p := range places {
		j.printf("  %d pod(s) deleted: %s is on %s, pool %s", deleted, p.Pod, p.Node, p.Pool)
	}
}

// logs prints where the logs are, or their ends.
func (j *job) logs() {
	if j.options.Keep {
		j.printf("  Logs of every component: %s", j.env.Cluster.Dir())
		return
	}
	names := []string{programs.KubectlSNO.Name}
	for _, module := range framework.Modules() {
		names = append(names, module.Host().Name)
	}
	for _, name := range names {
		if program := j.env.Cluster.Program(name); program != nil {
			j.printf("  The log of %s ends with:\n%s", name, program.LogTail(1500))
		}
	}
	j.printf("  Run it with -keep to have all logs.")
}

// synchronized is for the output of several goroutines: an operator may end at any time.
type synchronized struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *synchronized) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

type indent struct{ out io.Writer }

func (i indent) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(i.out, "  %s", p); err != nil {
		return 0, err
	}
	return len(p), nil
}
