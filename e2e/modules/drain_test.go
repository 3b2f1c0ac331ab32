// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
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

// drained is a cluster whose nodes request drains.
type drained struct {
	*steps.Cluster
	// offset is the end of the audit log at the last mark.
	offset int64
}

func startDrained(ctx context.Context, scenario string) *drained {
	GinkgoHelper()
	d := &drained{Cluster: steps.Start(ctx, framework.Config{Scenario: scenario})}
	Expect(d.embedded().EnsureNamespace(ctx, workload)).To(Succeed())
	return d
}

func (d *drained) embedded() *embedded.Cluster { return d.Cluster.Cluster }

func (d *drained) control(args ...string) {
	GinkgoHelper()
	d.RunAll(map[framework.Module]string{framework.MachineConfig: "AsExpected|Draining|DrainFailed"}, args...)
}

func (d *drained) expect(reason string) {
	GinkgoHelper()
	d.Expect(map[framework.Module]string{framework.MachineConfig: reason})
}

func (d *drained) mark() {
	GinkgoHelper()
	var err error
	d.offset, err = d.embedded().AuditOffset(d.Ctx)
	Expect(err).NotTo(HaveOccurred())
}

// done returns the actions of the controller since the last mark.
func (d *drained) done() drains.Actions {
	GinkgoHelper()
	done, err := drains.Read(d.Ctx, d.embedded(), d.offset, framework.MachineConfig.User())
	Expect(err).NotTo(HaveOccurred())
	Expect(done.Others).To(BeEmpty(), "unexpected writes")
	return done
}

func (d *drained) request(node string, r machineconfig.Request) {
	GinkgoHelper()
	Expect(drains.WriteRequest(d.Ctx, d.embedded().Clientset(), node, r)).To(Succeed())
}

func (d *drained) completed(node string, r machineconfig.Request) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(d.Ctx, drainLimit)
	defer cancel()
	Expect(drains.WaitForCompletion(ctx, d.embedded().Clientset(), node, r)).To(Succeed(), func() string { return d.Running[framework.MachineConfig].LogTail(2000) })
}

func (d *drained) requestAndWait(node string, r machineconfig.Request) {
	GinkgoHelper()
	d.request(node, r)
	d.completed(node, r)
}

func (d *drained) evictable(ctx context.Context, node string) []string {
	GinkgoHelper()
	pods, err := drains.Evictable(ctx, d.embedded().Clientset(), node)
	Expect(err).NotTo(HaveOccurred())
	return pods
}

func (d *drained) create(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(d.Kube.Create(d.Ctx, o)).To(Succeed())
	}
}

func (d *drained) runs(app string, count int) {
	GinkgoHelper()
	Eventually(d.Ctx, func(ctx context.Context) ([]corev1.Pod, error) {
		pods, err := d.embedded().Clientset().CoreV1().Pods(workload).List(ctx, metav1.ListOptions{
			LabelSelector: "app=" + app, FieldSelector: "status.phase=Running", ResourceVersion: "0",
		})
		return pods.Items, err
	}).WithTimeout(drainLimit).Should(HaveLen(count), "pods of %s run", app)
}

// template returns a pod that may run anywhere and ends at once.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](0), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}
}

func deployment(app string, replicas int32, nodes map[string]string) *appsv1.Deployment {
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
	}}
	// A pod that tolerates all taints would return to a cordoned node at once.
	made.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists}}
	made.Spec.Template.Spec.NodeSelector = nodes
	return made
}

func on(node string) map[string]string { return map[string]string{corev1.LabelHostname: node} }

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

// With a single control-plane node nothing may be cordoned or evicted, otherwise exactly what kubectl drain evicts,
// according to the audit log.
var _ = DescribeTable("A node requests a drain and an uncordon, and no other pods are evicted than by kubectl",
	func(ctx SpecContext, name string) {
		d := startDrained(ctx, name)
		// The first is a control-plane node and the last a worker, if the cluster has them.
		nodes := d.Nodes()
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
		for _, node := range request {
			d.mark()
			evictable, cordons := d.evictable(ctx, node), []string{node}
			Expect(evictable).NotTo(BeEmpty(), "pods on node %s", node)
			if d.Scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode {
				evictable, cordons = nil, nil
			}
			d.requestAndWait(node, drainRequest("one"))
			done := d.done()
			Expect(slices.Equal(done.Evicted, evictable)).To(BeTrue(), "evicted from node %s:\n%v, want\n%v", node, done.Evicted, evictable)
			Expect(slices.Equal(done.Cordons, cordons)).To(BeTrue(), "cordoned %v, want %v", done.Cordons, cordons)
			Expect(done.Completions).To(Equal([]string{node}))
			d.mark()
			d.requestAndWait(node, uncordonRequest("one"))
			done = d.done()
			Expect(slices.Equal(done.Cordons, cordons)).To(BeTrue(), "uncordoned %v, want %v", done.Cordons, cordons)
			Expect(done.Evicted).To(BeEmpty())
		}
		d.Quiet()
	},
	func(name string) string { return "on " + name },
	Entry(nil, Label(suite.Smoke), "none-sno-day1-workers"), Entry(nil, Label(suite.Smoke), "ha"),
	Entry(nil, Label(suite.Long), "none-sno"), Entry(nil, Label(suite.Long), "compact"), Entry(nil, Label(suite.Long), "arbiter"),
	Entry(nil, Label(suite.Long), "two-node"), Entry(nil, Label(suite.Long), "external"),
)

var _ = It("A drain survives a budget that permits no eviction, a killed controller and the deletion of its node", Label(suite.Smoke), func(ctx SpecContext) {
	d := startDrained(ctx, "ha")
	const held, deleted, free = "worker-0", "worker-1", 5
	// A killed controller would hold its Lease for minutes.
	args := []string{"--drain-timeout=4s", "--leader-elect=false"}
	kill := func() {
		Expect(d.Running[framework.MachineConfig].Kill()).To(Succeed())
		d.control(args...)
	}
	d.create(deployment("held", 1, on(held)), deployment("free", free, on(held)), budget("held", 0))
	d.runs("held", 1)
	d.runs("free", free)
	d.control(args...)

	By("The drain times out")
	d.mark()
	d.request(held, drainRequest("one"))
	d.expect("DrainFailed")
	done := d.done()
	Expect(done.Completions).To(BeEmpty())
	Expect(done.Evicted).To(HaveLen(free))
	Expect(done.Refused).NotTo(BeZero())

	By("The controller is killed during a retry, and the budget is deleted when the next process runs")
	kill()
	d.expect("DrainFailed")
	Expect(d.Kube.Delete(ctx, budget("held", 0))).To(Succeed())
	d.completed(held, drainRequest("one"))
	d.expect(asExpected)
	done = d.done()
	Expect(done.Cordons).To(Equal([]string{held}))
	Expect(done.Completions).To(Equal([]string{held}))
	Expect(done.Evicted).To(HaveLen(free + 1))
	Expect(slices.Compact(slices.Clone(done.Evicted))).To(Equal(done.Evicted), "each once")
	d.requestAndWait(held, uncordonRequest("one"))

	By("The controller is killed at the start of a drain")
	d.runs("free", free)
	d.request(held, drainRequest("two"))
	kill()
	d.completed(held, drainRequest("two"))
	d.requestAndWait(held, uncordonRequest("two"))

	By("The node is deleted")
	d.create(deployment("gone", 1, on(deleted)), budget("gone", 0))
	d.runs("gone", 1)
	d.mark()
	d.request(deleted, drainRequest("one"))
	Eventually(ctx, func() int { return d.done().Refused }).WithTimeout(drainLimit).ShouldNot(BeZero())
	Expect(d.embedded().DeleteNode(ctx, deleted)).To(Succeed())
	d.expect(asExpected)
	d.Quiet()
	done = d.done()
	Expect(done.Completions).To(BeEmpty())
	Expect(done.Evicted).To(BeEmpty())
})

// Their agents restart the nodes, which takes no time here, and request to uncordon them. A watch of every version of
// every node checks that never more are cordoned than the pool allows, and that no drain completes before the node's
// pods are gone.
var _ = DescribeTable("When many nodes request drains at once, no more are cordoned than their pool allows",
	func(ctx SpecContext, count, pods int, maxUnavailable string, most int) {
		d := startDrained(ctx, "ha")
		const perApp = 20
		var nodes []embedded.NodeSpec
		for i := range count {
			nodes = append(nodes, embedded.NodeSpec{Name: fmt.Sprintf("many-%02d", i), Roles: []string{"many"}})
		}
		Expect(d.embedded().AddNodes(ctx, nodes...)).To(Succeed())
		d.create(daemonSet("daemon"))
		for i := range pods / perApp {
			app := fmt.Sprint("many-", i)
			d.create(budget(app, perApp/2), deployment(app, perApp, map[string]string{"node-role.kubernetes.io/many": ""}))
		}
		allRun := func() {
			for i := range pods / perApp {
				d.runs(fmt.Sprint("many-", i), perApp)
			}
		}
		allRun()
		d.control()
		pool := &unstructured.Unstructured{}
		Expect(pool.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool","metadata":{"name":"many"},
			"spec":{"maxUnavailable":%s,"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/many":""}}}}`, maxUnavailable))).To(Succeed())
		d.create(pool)

		ctx5, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		kube := d.embedded().Clientset()
		list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		watching, err := kube.CoreV1().Nodes().Watch(ctx5, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "node-role.kubernetes.io/many"})
		Expect(err).NotTo(HaveOccurred())
		defer watching.Stop()
		d.mark()
		var asking errgroup.Group
		for _, node := range nodes {
			asking.Go(func() error { return drains.WriteRequest(ctx, kube, node.Name, drainRequest("one")) })
		}
		Expect(asking.Wait()).To(Succeed())
		Expect(d.follow(ctx5, watching, count, most)).To(Equal(most), "nodes that were cordoned at once")
		allRun()
		done := d.done()
		GinkgoWriter.Printf("%d evictions, %d refused\n", len(done.Evicted), done.Refused)
		Expect(len(done.Evicted)).To(BeNumerically(">=", pods*9/10))
		d.Quiet()
	},
	Entry("of 6 nodes, two", Label(suite.Smoke), 6, 60, "2", 2),
	Entry("of 30 nodes with 1,000 pods, 20 percent", Label(suite.Long), 30, 1000, `"20%"`, 6),
)

var errWatchEnded = errors.New("the watch of nodes ended")

// follow simulates the agents until every node was drained and uncordoned, and returns the maximum number of cordoned
// nodes.
func (d *drained) follow(ctx context.Context, watching watch.Interface, count, most int) (peak int) {
	GinkgoHelper()
	cordoned, uncordoning, back := map[string]bool{}, map[string]bool{}, map[string]bool{}
	next := func() (*corev1.Node, error) {
		select {
		case event, open := <-watching.ResultChan():
			if node, ok := event.Object.(*corev1.Node); open && ok {
				return node, nil
			}
			return nil, errWatchEnded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for len(back) < count {
		node, err := next()
		Expect(err).NotTo(HaveOccurred(), func() string {
			return fmt.Sprintf("%d of %d nodes were drained\n%s", len(back), count, d.Running[framework.MachineConfig].LogTail(2000))
		})
		if delete(cordoned, node.Name); node.Spec.Unschedulable {
			cordoned[node.Name] = true
		}
		peak = max(peak, len(cordoned))
		Expect(peak).To(BeNumerically("<=", most), "nodes are cordoned at once: %v", cordoned)
		switch answer := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; {
		case answer == uncordonRequest("one").String():
			back[node.Name] = true
		case answer == drainRequest("one").String() && !uncordoning[node.Name]:
			left := d.evictable(ctx, node.Name)
			Expect(len(left) == 0 && node.Spec.Unschedulable).To(BeTrue(), "the drain of node %s completed with %s on it", node.Name, strings.Join(left, ", "))
			uncordoning[node.Name] = true
			d.request(node.Name, uncordonRequest("one"))
		}
	}
	return peak
}
