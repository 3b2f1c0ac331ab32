// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func (d *drained) mark() {
	GinkgoHelper()
	var err error
	d.offset, err = d.embedded().AuditOffset(d.Ctx)
	Expect(err).NotTo(HaveOccurred())
}

// done returns the actions of the controller since the last mark. A budget may refuse an eviction at first.
func (d *drained) done() drains.Actions {
	GinkgoHelper()
	done := drains.Read(d.Ctx, d.embedded(), d.offset, framework.MachineConfig.User())
	done.Refused = 0
	return done
}

func (d *drained) requestAndWait(node string, verb machineconfig.Verb) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(d.Ctx, drainLimit)
	defer cancel()
	kube, request := d.embedded().Clientset(), machineconfig.Request{Verb: verb, Config: "one"}
	drains.WriteRequest(ctx, kube, node, request)
	drains.WaitForCompletion(ctx, kube, node, request)
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

func deployment(app string, replicas int32) *appsv1.Deployment {
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
	}}
	// A pod that tolerates all taints would return to a cordoned node at once.
	made.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists}}
	return made
}

func daemonSet(app string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: app}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
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
		d.create(daemonSet("daemon"), deployment("spread", int32(3*len(nodes)))) //nolint:gosec // few
		for _, node := range request {
			lone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "lone-" + node}, Spec: template("lone").Spec}
			lone.Spec.NodeName = node
			lone.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			d.create(lone)
		}
		d.runs("spread", 3*len(nodes))
		d.runs("daemon", len(nodes))
		d.RunAll(map[framework.Module]string{framework.MachineConfig: asExpected})
		for _, node := range request {
			d.mark()
			evictable, cordons := drains.Evictable(ctx, d.embedded().Clientset(), node), []string{node}
			Expect(evictable).NotTo(BeEmpty(), "pods on node %s", node)
			if d.Scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode {
				evictable, cordons = nil, nil
			}
			d.requestAndWait(node, machineconfig.VerbDrain)
			Expect(d.done()).To(Equal(drains.Actions{Evicted: evictable, Cordons: cordons, Completions: []string{node}}))
			d.mark()
			d.requestAndWait(node, machineconfig.VerbUncordon)
			Expect(d.done()).To(Equal(drains.Actions{Cordons: cordons, Completions: []string{node}}))
		}
		d.Quiet()
	},
	func(name string) string { return "on " + name },
	Entry(nil, Label(suite.Smoke), "none-sno-day1-workers"), Entry(nil, Label(suite.Long), "ha"),
	Entry(nil, Label(suite.Long), "none-sno"), Entry(nil, Label(suite.Long), "compact"), Entry(nil, Label(suite.Long), "arbiter"),
	Entry(nil, Label(suite.Long), "two-node"), Entry(nil, Label(suite.Long), "external"),
)
