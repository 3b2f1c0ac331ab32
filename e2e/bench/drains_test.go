// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubectl "k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	drainedNode = "drained"
	drainedPods = 100
	// drainRounds is the number of drains: the median of five of the same programs was anywhere from 0.94 to 1.32 of
	// kubectl's.
	drainRounds = 15
	// drainRatio limits the time of a drain by request relative to kubectl drain.
	drainRatio = 1.25
)

var _ = It("A drain by request takes hardly longer than kubectl drain, and on one node none is made", Label("machineconfig"), specTimeout, func(ctx SpecContext) {
	s := suite.Must(framework.Start(ctx, framework.Config{Scenario: "compact", Progress: GinkgoWriter}))
	DeferCleanup(s.Stop)
	suite.Must(s.RunController(ctx, framework.MachineConfig))
	suite.Must(s.WaitReason(ctx, framework.MachineConfig, waitTimeout, "AsExpected"))
	Expect(s.Cluster.AddNodes(ctx, embedded.NodeSpec{Name: drainedNode, Roles: []string{"worker"}})).To(Succeed())
	kube := s.Cluster.Clientset()

	// Both drain the same node with the same pods, in turn. The pods can run nowhere else, so they return when it is
	// uncordoned.
	createDrained(ctx, kube)
	var ours, theirs, completions []time.Duration
	for i := range drainRounds {
		drainedRuns(ctx, kube)
		ours = append(ours, completionTime(ctx, kube, fmt.Sprint("drain-", i)))
		drainedRuns(ctx, kube)
		theirs = append(theirs, kubectlDrain(ctx, kube))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	ratio := float64(percentile(ours, 50)) / float64(percentile(theirs, 50))

	setTopology(ctx, s, true)
	for i := range max(*changes/2, 1) {
		completions = append(completions, completionTime(ctx, kube, fmt.Sprint("answer-", i)))
	}
	suite.Require(suite.Bench,
		timesRow(fmt.Sprintf("Drain request to its completion on one node, %d requests", len(completions)), completions, time.Second,
			"stock daemon: no request, it skips the drain by itself"),
		suite.Row{
			What:     fmt.Sprintf("Drain of a node with %d pods, request to completion, in turn with kubectl drain, %d times each", drainedPods, len(ours)),
			Measured: fmt.Sprintf("p50 %s against %s, ratio %.2f", millis(percentile(ours, 50)), millis(percentile(theirs, 50)), ratio),
			Bound:    fmt.Sprintf("ratio < %.2f", drainRatio), Compared: "kubectl drain", Held: ratio < drainRatio,
		})
})

// completionTime requests a drain, which it measures, and an uncordon.
func completionTime(ctx context.Context, kube kubernetes.Interface, config string) (took time.Duration) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for _, verb := range []machineconfig.Verb{machineconfig.VerbDrain, machineconfig.VerbUncordon} {
		request := machineconfig.Request{Verb: verb, Config: config}
		began := time.Now()
		drains.WriteRequest(ctx, kube, drainedNode, request)
		drains.WaitForCompletion(ctx, kube, drainedNode, request)
		if verb == machineconfig.VerbDrain {
			took = time.Since(began)
		}
	}
	return took
}

func createDrained(ctx context.Context, kube kubernetes.Interface) {
	GinkgoHelper()
	labels := map[string]string{"app": drainedNode}
	pod := newPod("", "").Spec
	pod.NodeSelector = map[string]string{corev1.LabelHostname: drainedNode}
	pod.TerminationGracePeriodSeconds = ptr.To[int64](0)
	suite.Must(kube.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: drainedNode},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](drainedPods), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{}))
}

func drainedRuns(ctx context.Context, kube kubernetes.Interface) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (int, error) {
		pods, err := kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + drainedNode, FieldSelector: "status.phase=Running"})
		return len(pods.Items), err
	}).Should(Equal(drainedPods), "the pods to drain run")
}

// kubectlDrain runs kubectl drain and kubectl uncordon, and measures the former.
func kubectlDrain(ctx context.Context, kube kubernetes.Interface) time.Duration {
	GinkgoHelper()
	helper := &kubectl.Helper{
		Ctx: ctx, Client: kube, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Timeout: waitTimeout, EvictErrorRetryDelay: 5 * time.Second, Out: GinkgoWriter, ErrOut: GinkgoWriter,
	}
	began := time.Now()
	node := suite.Must(kube.CoreV1().Nodes().Get(ctx, drainedNode, metav1.GetOptions{}))
	Expect(kubectl.RunCordonOrUncordon(helper, node, true)).To(Succeed())
	Expect(kubectl.RunNodeDrain(helper, drainedNode)).To(Succeed())
	took := time.Since(began)
	Expect(kubectl.RunCordonOrUncordon(helper, node, false)).To(Succeed())
	return took
}
