package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/operators"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrVerificationFailed says that the router was not where it must be, or not as many.
var ErrVerificationFailed = errors.New("the proof did not hold")

// Options say what to run and for whom.
type Options struct {
	// Scenario is a name of package scenario.
	Scenario string
	// Once ends after the proof. Otherwise the cluster stays up and changes are printed until ctx ends.
	Once bool
	// Out is where everything is printed; Colour says whether it is a terminal that shows colours.
	Out    io.Writer
	Colour bool
	// Keep leaves the cluster's folder with all logs.
	Keep bool
	// OnReady is called with the cluster when it stays up; nil for nobody.
	OnReady func(*embedded.Cluster)
}

const (
	masterLabel = "node-role.kubernetes.io/master"
	workerLabel = "node-role.kubernetes.io/worker"

	// restarts is how often the router's pod is deleted before and after.
	restarts = 5
	// Reasons that end the wait for the controller.
	asExpected, notNeeded = "AsExpected", "NotNeeded"
)

type job struct {
	terminal
	options  Options
	scenario scenario.Scenario
	rig      *harness.Environment
	etcd     *operators.Process // nil where etcd is elsewhere
	kube     client.Client
	router   router
}

// Run does the main job. It returns nil when the proof held, an error that wraps ErrVerificationFailed when it did not, and ctx's end is no
// error once the proof is done.
func Run(ctx context.Context, options Options) error {
	s, err := scenario.Lookup(options.Scenario)
	if err != nil {
		return err
	}
	j := &job{terminal: terminal{out: options.Out, colour: options.Colour}, options: options, scenario: s}
	j.heading("sno: the cluster operators on %s", s.Name)
	j.say("  %s", s.Description)
	j.say("  %s", j.expectation())
	j.say("  %s", j.operandsExpectation())
	if err := j.start(ctx); err != nil {
		return err
	}
	defer j.stop()
	if err := j.prove(ctx); err != nil {
		j.say("\n%s %v", j.paint(red, "The proof did not hold:"), err)
		j.logs()
		return err
	}
	j.say("\n%s", j.paint(green, "The proof held."))
	if options.Once {
		return nil
	}
	return j.stay(ctx)
}

func (j *job) stop() {
	if j.etcd != nil {
		j.etcd.Stop()
	}
	j.rig.Stop()
}

func (j *job) expectation() string {
	if j.scenario.Pool == scenario.PoolNone {
		return "Expected: no default router, since the control plane is not in this cluster"
	}
	return fmt.Sprintf("Expected: %d router(s) on pool %s", j.scenario.Replicas, j.scenario.Pool)
}

// start builds what is needed and brings the cluster up with the host operator, which stands in for the stock one.
func (j *job) start(ctx context.Context) error {
	j.heading("Build and start")
	var err error
	// A stock ingress operator, and operators that vendor the modules. Where one pod is right, downloads comes from a static manifest, as
	// releases of old have it, for the module to take over. Elsewhere the module would leave that manifest as it is, with what
	// is wrong about it: it belongs to no pool, and cannot be rolled out on two nodes.
	manifest := j.scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
	j.rig, err = harness.Start(ctx, harness.Config{
		Scenario: j.scenario.Name, Progress: indent{j.out}, Keep: j.options.Keep, VersionOperator: manifest,
		Hosts: map[harness.Module][]string{
			harness.Ingress: {"--stock"}, harness.Console: {"--downloads=" + strconv.FormatBool(!manifest)}, harness.Auth: nil,
		},
	})
	if err != nil {
		return err
	}
	// As on every OpenShift cluster, nodes may ask to join: whoever checks this one asks as one of them.
	if err := joining.Prepare(ctx, j.rig.Cluster); err != nil {
		j.rig.Stop()
		return err
	}
	// The members of etcd have their guards, which the etcd operator makes.
	if j.scenario.ControlPlaneTopology != configv1.ExternalTopologyMode {
		if j.etcd, err = j.rig.RunStandIn(ctx, operators.EtcdUser, operators.Etcd); err != nil {
			j.rig.Stop()
			return err
		}
	}
	j.kube = j.rig.Cluster.Client()
	j.router = router{kube: j.kube}
	return nil
}

func (j *job) prove(ctx context.Context) error {
	routed := j.scenario.Pool != scenario.PoolNone
	if routed {
		if err := j.before(ctx); err != nil {
			return err
		}
	}
	if err := j.operandsBefore(ctx); err != nil {
		return err
	}
	before, err := j.read(ctx)
	if err != nil {
		return err
	}
	if err := j.runControllers(ctx); err != nil {
		return err
	}
	if routed {
		err = j.decided(ctx)
	} else {
		err = j.nothingToRoute(ctx)
	}
	if err != nil {
		return err
	}
	if err := j.operandsDecided(ctx); err != nil {
		return err
	}
	after, err := j.read(ctx)
	if err != nil {
		return err
	}
	if err := j.showChanges(before, after); err != nil {
		return err
	}
	if routed {
		if err := j.after(ctx); err != nil {
			return err
		}
	}
	return j.operandsAfter(ctx)
}

// before shows what happens to the router without us.
func (j *job) before(ctx context.Context) error {
	j.heading("Before: the stock operator's router")
	places, err := j.router.settled(ctx, "", j.scenario.PendingUntilDay2)
	if err != nil {
		return err
	}
	table := j.columns([]string{"PODS DELETED", "ROUTER", "NODE", "POOL", ""}, []string{"", places[0].Pod, "day2-worker-0", "master", ""})
	j.showPlaces(table, "0", places)
	if waiting := j.scenario.PendingUntilDay2; waiting > 0 {
		j.say("  %s", j.paint(dim, fmt.Sprintf("%d router(s) Pending: no other node takes it until another worker joins", waiting)))
	}
	if j.scenario.Day2Workers > 0 {
		if err := j.scenario.AddDay2Workers(ctx, j.rig.Cluster); err != nil {
			return err
		}
		j.say("  %s", j.paint(dim, fmt.Sprintf("%d worker(s) joined", j.scenario.Day2Workers)))
		if j.scenario.PendingUntilDay2 > 0 {
			if places, err = j.router.settled(ctx, "", 0); err != nil {
				return err
			}
			j.showPlaces(table, "0", places)
		}
	}
	floated := offPool(places, scenario.PoolMaster)
	for i := 1; i <= restarts && !floated; i++ {
		if places, err = j.router.restart(ctx, places[0]); err != nil {
			return err
		}
		j.showPlaces(table, strconv.Itoa(i), places)
		floated = offPool(places, scenario.PoolMaster)
	}
	switch hasWorkers := j.scenario.Day1Workers+j.scenario.Day2Workers > 0; {
	case j.scenario.Pool != scenario.PoolMaster:
		j.say("  That is where it belongs on this cluster.")
	case floated:
		j.say("  %s", j.paint(red, "The router left the control plane. DNS still points there: ingress is down."))
	case hasWorkers:
		return fmt.Errorf("%w: the router never left the control plane without the controller, so staying there would prove nothing", ErrVerificationFailed)
	default:
		j.say("  There is no other node it could float to.")
	}
	return nil
}

// runControllers starts the controllers as a cluster would run them: with service accounts of their own and no right beyond their roles.
func (j *job) runControllers(ctx context.Context) error {
	j.heading("Start the controllers")
	for _, module := range harness.Modules() {
		if _, err := j.rig.RunController(ctx, module); err != nil {
			return err
		}
	}
	return nil
}

// decided waits until the ingress controller shows a verdict and has nothing left to do.
func (j *job) decided(ctx context.Context) error {
	verdict, err := j.rig.WaitReason(ctx, harness.Ingress, settleTimeout, asExpected, notNeeded)
	if err != nil {
		_, settleErr := j.router.settled(ctx, "", 0)
		return fmt.Errorf("%w: %w", ErrVerificationFailed, errors.Join(err, settleErr))
	}
	j.say("  %s", verdict)
	return nil
}

// after deletes the router's pod again and again; it must come back where it belongs, also once the control plane is closed
// to ordinary workloads.
func (j *job) after(ctx context.Context) error {
	j.heading("After: the same router")
	places, err := j.router.settled(ctx, "", 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
	}
	table := j.columns([]string{"PODS DELETED", "ROUTER", "NODE", "POOL", ""}, []string{"", places[0].Pod, "day2-worker-0", "master", ""})
	for i := 0; ; i++ {
		j.showPlaces(table, strconv.Itoa(i), places)
		if err := check(j.scenario, places); err != nil {
			return err
		}
		if i == restarts {
			return nil
		}
		if i == restarts/2 && j.scenario.Pool == scenario.PoolMaster && j.scenario.MastersSchedulable {
			if err := j.closeControlPlane(ctx); err != nil {
				return err
			}
			j.say("  %s", j.paint(dim, "mastersSchedulable is now false: the control plane has its NoSchedule taint and is no worker any more"))
		}
		if places, err = j.router.restart(ctx, places[i%len(places)]); err != nil {
			return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
		}
	}
}

// closeControlPlane is what the machine-config operator does when an administrator sets mastersSchedulable to false.
func (j *job) closeControlPlane(ctx context.Context) error {
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

// nothingToRoute: where the control plane is elsewhere there is no default IngressController, and nobody makes one.
func (j *job) nothingToRoute(ctx context.Context) error {
	if err := j.controllerLooked(ctx); err != nil {
		return err
	}
	events, _, err := j.rig.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{
		User: harness.Ingress.User(), Resource: "ingresscontrollers", WritesOnly: true,
	})
	if err != nil {
		return err
	}
	if len(events) > 0 {
		return fmt.Errorf("%w: the controller wrote %d time(s) although there is nothing to do", ErrVerificationFailed, len(events))
	}
	j.say("  The ingress controller is up and wrote nothing: there is no default router.")
	return nil
}

// controllerLooked waits until the controller leads, has read the IngressControllers and holds a watch on them: whatever it would
// do, it has what it needs to do it.
func (j *job) controllerLooked(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		leases, err := j.rig.Cluster.Clientset().CoordinationV1().Leases(harness.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		leads := slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool {
			return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
		})
		events, _, err := j.rig.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: harness.Ingress.User(), Resource: "ingresscontrollers"})
		watches := slices.ContainsFunc(events, func(e auditv1.Event) bool { return e.Verb == "watch" })
		return leads && watches, err
	})
	if err != nil {
		return fmt.Errorf("%w: the controller did not look at the cluster: %w", ErrVerificationFailed, err)
	}
	return nil
}

func (j *job) showPlaces(table columns, label string, places []place) {
	for i, p := range places {
		mark := j.paint(green, "ok")
		if j.scenario.Pool == scenario.PoolMaster && p.Pool != string(scenario.PoolMaster) {
			mark = j.paint(red, "not on the control plane")
		}
		if i > 0 {
			label = ""
		}
		table.row(label, p.Pod, p.Node, p.Pool, mark)
	}
}

// logs says where to look when something went wrong.
func (j *job) logs() {
	if j.options.Keep {
		j.say("  Logs of every component: %s", j.rig.Cluster.Dir())
		return
	}
	var names []string
	for _, module := range harness.Modules() {
		names = append(names, module.Controller().Name, module.Host().Name)
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(j.rig.Cluster.Dir(), name+".log"))
		if err != nil {
			continue
		}
		const tail = 1500
		if len(content) > tail {
			content = content[len(content)-tail:]
		}
		j.say("  The log of %s ends with:\n%s", name, content)
	}
	j.say("  Run it with -keep to have all logs.")
}

// indent puts two spaces before what other packages print.
type indent struct{ out io.Writer }

func (i indent) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(i.out, "  %s", p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// stamp is the time of day for a line that is printed as it happens.
func stamp() string { return time.Now().Format(time.TimeOnly) }
