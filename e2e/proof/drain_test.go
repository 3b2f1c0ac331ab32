// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	workload   = "workload"
	drainLimit = 90 * time.Second
)

func drainRequest(config string) machineconfig.Request {
	return machineconfig.Request{Verb: machineconfig.VerbDrain, Config: config}
}

func uncordonRequest(config string) machineconfig.Request {
	return machineconfig.Request{Verb: machineconfig.VerbUncordon, Config: config}
}

type drained struct {
	*proof
	kube kubernetes.Interface
	// offset is the end of the audit log at the last mark.
	offset int64
}

func startDrained(t *testing.T, scenario string) *drained {
	t.Helper()
	d := &drained{proof: start(t, framework.Config{Scenario: scenario})}
	d.kube = d.Cluster.Clientset()
	d.must(d.Cluster.EnsureNamespace(d.ctx, workload))
	return d
}

func (d *drained) control(args ...string) {
	d.t.Helper()
	d.controllers(args, map[framework.Module]string{framework.MachineConfig: "AsExpected|Draining|DrainFailed"})
}

func (d *drained) mark() {
	d.t.Helper()
	var err error
	d.offset, err = d.Cluster.AuditOffset(d.ctx)
	d.must(err)
}

func (d *drained) done() drains.Actions {
	d.t.Helper()
	done, err := drains.Read(d.ctx, d.Cluster, d.offset, framework.MachineConfig.User())
	d.must(err)
	if len(done.Others) > 0 {
		d.t.Errorf("%s: unexpected writes: %v", d.Scenario.Name, done.Others)
	}
	return done
}

func (d *drained) request(node string, r machineconfig.Request) {
	d.t.Helper()
	d.must(drains.WriteRequest(d.ctx, d.kube, node, r))
}

func (d *drained) completed(node string, r machineconfig.Request) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.ctx, drainLimit)
	defer cancel()
	if err := drains.WaitForCompletion(ctx, d.kube, node, r); err != nil {
		d.t.Fatalf("%s: %v\n%s", d.Scenario.Name, err, d.running[framework.MachineConfig].LogTail(logTail))
	}
}

func (d *drained) create(objects ...client.Object) {
	d.t.Helper()
	for _, o := range objects {
		d.must(d.Cluster.Client().Create(d.ctx, o))
	}
}

// template returns a pod that may run anywhere and ends at once.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](0), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}
}

func deployment(app string, replicas int32, change func(*corev1.PodSpec)) *appsv1.Deployment {
	labels := map[string]string{"app": app}
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(app),
	}}
	// A pod that tolerates all taints would return to a cordoned node at once.
	made.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists}}
	if change != nil {
		change(&made.Spec.Template.Spec)
	}
	return made
}

func on(node string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

func daemonSet(app string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
	}}
}

func budget(app string, maxUnavailable int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, MaxUnavailable: ptr.To(intstr.FromInt32(maxUnavailable)),
	}}
}

func (d *drained) runs(app string, count int) {
	d.t.Helper()
	err := wait.PollUntilContextTimeout(d.ctx, poll, drainLimit, true, func(ctx context.Context) (bool, error) {
		pods, err := d.kube.CoreV1().Pods(workload).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "status.phase=Running", ResourceVersion: "0"})
		return err == nil && len(pods.Items) == count, err
	})
	if err != nil {
		d.t.Fatalf("%s: %d pods of %s do not run: %v", d.Scenario.Name, count, app, err)
	}
}

// A node requests a drain and an uncordon. With a single control-plane node nothing may be cordoned or evicted,
// otherwise exactly what kubectl drain evicts, according to the audit log.
func TestDrainOnEveryTopology(t *testing.T) {
	t.Parallel()
	names := []string{"none-sno", "none-sno-day1-workers", "ha", "compact", "arbiter", "two-node", "external"}
	if testing.Short() {
		names = []string{"none-sno-day1-workers", "ha"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDrained(t, name)
			// The first is a control-plane node and the last a worker, if the cluster has them.
			nodes := d.nodes()
			slices.Sort(nodes)
			request := slices.Compact([]string{nodes[0], nodes[len(nodes)-1]})
			d.create(daemonSet("daemon"), deployment("spread", int32(3*len(nodes)), nil)) //nolint:gosec // few
			for _, node := range request {
				lone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "lone-" + node}, Spec: template("lone").Spec}
				lone.Spec.NodeName = node
				lone.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
				d.create(lone)
			}
			d.runs("spread", 3*len(nodes))
			d.runs("daemon", len(nodes))
			d.control()
			single := d.Scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
			for _, node := range request {
				d.mark()
				evictable, err := drains.Evictable(d.ctx, d.kube, node)
				d.must(err)
				if len(evictable) == 0 {
					t.Errorf("%s: no pod on node %s", name, node)
				}
				if single {
					evictable = nil
				}
				d.request(node, drainRequest("one"))
				d.completed(node, drainRequest("one"))
				done := d.done()
				if !slices.Equal(done.Evicted, evictable) {
					t.Errorf("%s: evicted from node %s:\n%v, want\n%v", name, node, done.Evicted, evictable)
				}
				var cordons []string
				if !single {
					cordons = []string{node}
				}
				if !slices.Equal(done.Cordons, cordons) || !slices.Equal(done.Completions, []string{node}) {
					t.Errorf("%s: cordoned %v, want %v; completed %v", name, done.Cordons, cordons, done.Completions)
				}
				d.mark()
				d.request(node, uncordonRequest("one"))
				d.completed(node, uncordonRequest("one"))
				done = d.done()
				if !slices.Equal(done.Cordons, cordons) || len(done.Evicted) > 0 {
					t.Errorf("%s: uncordoned %v, want %v; evicted %v", name, done.Cordons, cordons, done.Evicted)
				}
			}
			d.quiet()
		})
	}
}

// Faults during a drain: a budget that permits no eviction, a killed controller, a deleted node.
func TestDrainInterrupted(t *testing.T) {
	t.Parallel()
	d := startDrained(t, "ha")
	const held, deleted, free = "worker-0", "worker-1", 5
	// A killed controller would hold its Lease for minutes.
	args := []string{"--drain-timeout=4s", "--leader-elect=false"}
	d.create(deployment("held", 1, on(held)), deployment("free", free, on(held)), budget("held", 0))
	d.runs("held", 1)
	d.runs("free", free)
	d.control(args...)

	d.mark()
	d.request(held, drainRequest("one"))
	d.expect(map[framework.Module]string{framework.MachineConfig: "DrainFailed"})
	if done := d.done(); len(done.Completions) > 0 || len(done.Evicted) != free || done.Refused == 0 {
		t.Errorf("after a drain that timed out: completed %v, evicted %v, refused %d times", done.Completions, done.Evicted, done.Refused)
	}

	// Killed during a retry. The budget is deleted when the next process runs.
	d.must(d.running[framework.MachineConfig].Kill())
	d.control(args...)
	d.expect(map[framework.Module]string{framework.MachineConfig: "DrainFailed"})
	d.must(d.Cluster.Client().Delete(d.ctx, budget("held", 0)))
	d.completed(held, drainRequest("one"))
	d.expect(map[framework.Module]string{framework.MachineConfig: "AsExpected"})
	done := d.done()
	if !slices.Equal(done.Cordons, []string{held}) || !slices.Equal(done.Completions, []string{held}) {
		t.Errorf("cordoned %v, completed %v, want %s once", done.Cordons, done.Completions, held)
	}
	if len(slices.Compact(slices.Clone(done.Evicted))) != len(done.Evicted) || len(done.Evicted) != free+1 {
		t.Errorf("evicted %v, want %d pods, each once", done.Evicted, free+1)
	}
	d.request(held, uncordonRequest("one"))
	d.completed(held, uncordonRequest("one"))

	// Killed at the start of a drain.
	d.runs("free", free)
	d.request(held, drainRequest("two"))
	d.must(d.running[framework.MachineConfig].Kill())
	d.control(args...)
	d.completed(held, drainRequest("two"))
	d.request(held, uncordonRequest("two"))
	d.completed(held, uncordonRequest("two"))

	d.create(deployment("gone", 1, on(deleted)), budget("gone", 0))
	d.runs("gone", 1)
	d.mark()
	d.request(deleted, drainRequest("one"))
	d.until("a refused eviction", func() error {
		if d.done().Refused == 0 {
			return errors.New("none")
		}
		return nil
	})
	d.must(d.Cluster.DeleteNode(d.ctx, deleted))
	d.expect(map[framework.Module]string{framework.MachineConfig: "AsExpected"})
	d.quiet()
	if done := d.done(); len(done.Completions) > 0 || len(done.Evicted) > 0 {
		t.Errorf("after the node was deleted: completed %v, evicted %v", done.Completions, done.Evicted)
	}
}

func (d *drained) until(what string, check func() error) {
	d.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(d.ctx, poll, drainLimit, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		d.t.Fatalf("%s: waiting for %s: %v", d.Scenario.Name, what, errors.Join(last, err))
	}
}

// Many nodes request drains at once. Their agents restart them, which takes no time here, and request to uncordon them.
// A watch of every version of every node checks that never more are cordoned than the pool allows, and that no drain
// completes before the node's pods are gone.
func TestManyDrainsAtOnce(t *testing.T) {
	t.Parallel()
	count, pods, most := 30, 1000, 6
	if testing.Short() {
		count, pods, most = 6, 60, 2
	}
	d := startDrained(t, "ha")
	var specs []embedded.NodeSpec
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("many-%02d", i))
		specs = append(specs, embedded.NodeSpec{Name: names[i], Roles: []string{"many"}})
	}
	d.must(d.Cluster.AddNodes(d.ctx, specs...))
	d.create(daemonSet("daemon"))
	const perApp = 20
	runs := func() {
		for i := range pods / perApp {
			d.runs(fmt.Sprint("many-", i), perApp)
		}
	}
	for i := range pods / perApp {
		app := fmt.Sprint("many-", i)
		d.create(budget(app, perApp/2), deployment(app, perApp, func(spec *corev1.PodSpec) {
			spec.NodeSelector = map[string]string{"node-role.kubernetes.io/many": ""}
		}))
	}
	runs()
	d.control()
	pool, err := poolOf("many", `"20%"`)
	d.must(err)
	if count != 30 {
		pool, err = poolOf("many", fmt.Sprint(most))
		d.must(err)
	}
	d.must(d.Cluster.Client().Create(d.ctx, pool))

	ctx, cancel := context.WithTimeout(d.ctx, 5*time.Minute)
	defer cancel()
	list, err := d.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	d.must(err)
	watching, err := d.kube.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "node-role.kubernetes.io/many"})
	d.must(err)
	defer watching.Stop()
	d.mark()
	began := time.Now()
	var asking errgroup.Group
	for _, name := range names {
		asking.Go(func() error { return drains.WriteRequest(ctx, d.kube, name, drainRequest("one")) })
	}
	d.must(asking.Wait())
	seen := d.follow(ctx, watching, count, most)
	t.Logf("%d nodes with %d pods drained in %s, up to %d at once", count, pods, time.Since(began).Round(time.Second), seen)
	if seen < most {
		t.Errorf("at most %d nodes were cordoned at once, want %d", seen, most)
	}
	runs()
	done := d.done()
	t.Logf("%d evictions, %d refused", len(done.Evicted), done.Refused)
	if len(done.Evicted) < pods*9/10 {
		t.Errorf("only %d of %d pods were evicted", len(done.Evicted), pods)
	}
	d.quiet()
}

// follow simulates the agents until every node was drained and uncordoned, and returns the maximum number of cordoned
// nodes.
func (d *drained) follow(ctx context.Context, watching watch.Interface, count, most int) int {
	d.t.Helper()
	cordoned, uncordoning, back := map[string]bool{}, map[string]bool{}, map[string]bool{}
	peak := 0
	for len(back) < count {
		var node *corev1.Node
		select {
		case event, open := <-watching.ResultChan():
			var ok bool
			if node, ok = event.Object.(*corev1.Node); !open || !ok {
				d.t.Fatalf("the watch ended: %v", event)
			}
		case <-ctx.Done():
			d.t.Fatalf("%d of %d nodes were drained: %v\n%s", len(back), count, ctx.Err(), d.running[framework.MachineConfig].LogTail(logTail))
		}
		if delete(cordoned, node.Name); node.Spec.Unschedulable {
			cordoned[node.Name] = true
		}
		if peak = max(peak, len(cordoned)); len(cordoned) > most {
			d.t.Fatalf("%d nodes are cordoned at once, want at most %d: %v", len(cordoned), most, cordoned)
		}
		switch answer := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; {
		case answer == uncordonRequest("one").String():
			back[node.Name] = true
		case answer == drainRequest("one").String() && !uncordoning[node.Name]:
			left, err := drains.Evictable(ctx, d.kube, node.Name)
			d.must(err)
			if len(left) > 0 || !node.Spec.Unschedulable {
				d.t.Errorf("the drain of node %s completed with %s on it", node.Name, strings.Join(left, ", "))
			}
			uncordoning[node.Name] = true
			d.must(drains.WriteRequest(ctx, d.kube, node.Name, uncordonRequest("one")))
		}
	}
	return peak
}
