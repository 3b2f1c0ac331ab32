// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
)

// No drain on a single control-plane node, with real pods (R-MCO-2).
var _ = Describe("Nodes that request a drain", func() {
	const (
		steady = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
		// workers is the number of pods on the worker; one more is on the control plane.
		workers  = 2
		promptly = 10 * time.Second
	)
	var (
		e                          *Env
		control, worker, namespace string
	)
	// podsOn returns the pods on a node that run and are not being deleted.
	podsOn := func(ctx context.Context, node string) map[types.UID]string {
		GinkgoHelper()
		list := suite.Must(e.Kind.Clientset().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}))
		pods := map[types.UID]string{}
		for i := range list.Items {
			if pod := &list.Items[i]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				pods[pod.UID] = pod.Name
			}
		}
		return pods
	}
	isCordoned := func(ctx context.Context, node string) bool {
		GinkgoHelper()
		live := suite.Must(e.Kind.Clientset().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}))
		return live.Spec.Unschedulable
	}
	// request returns how long a request takes to be completed.
	request := func(ctx context.Context, node string, verb machineconfig.Verb, config string) time.Duration {
		GinkgoHelper()
		ctx, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		began, r := time.Now(), machineconfig.Request{Verb: verb, Config: config}
		drains.WriteRequest(ctx, e.Kind.Clientset(), node, r)
		drains.WaitForCompletion(ctx, e.Kind.Clientset(), node, r)
		return time.Since(began)
	}

	BeforeEach(func(ctx SpecContext) {
		e = cluster(ctx, day2Workers)
		control, worker, namespace = nodes(e)[0], lastWorker(ctx, e).Name, newNamespace(ctx, e)
		lone := scriptPod(namespace, "lone", steady, 1) // has no controller
		lone.Spec.NodeName = control
		running(ctx, e, lone)
		// These prefer the worker, but may run elsewhere.
		movable := scriptPod(namespace, "movable", steady, 1)
		movable.Spec.Tolerations = []corev1.Toleration{
			{Key: machineconfig.ControlPlaneRole, Operator: corev1.TolerationOpExists}, {Key: machineconfig.MasterRole, Operator: corev1.TolerationOpExists},
		}
		movable.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{worker},
			}}},
		}}}}
		Expect(e.Cluster.Client().Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "movable"},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](workers), Selector: &metav1.LabelSelector{MatchLabels: movable.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: movable.Labels}, Spec: movable.Spec},
			},
		})).To(Succeed())
		Eventually(ctx, podsOn).WithArguments(worker).Should(HaveLen(workers))
	}, starting)

	It("of a single control plane get an immediate answer, and keep their pods and stay schedulable", NodeTimeout(10*time.Minute), func(ctx SpecContext) {
		longest := time.Duration(0)
		for _, node := range []string{control, worker} {
			before := podsOn(ctx, node)
			Expect(before).NotTo(BeEmpty())
			longest = max(longest, request(ctx, node, machineconfig.VerbDrain, "rendered-single"))
			Expect(podsOn(ctx, node)).To(Equal(before), "the pods on node %s", node)
			Expect(isCordoned(ctx, node)).To(BeFalse(), "node %s", node)
			request(ctx, node, machineconfig.VerbUncordon, "rendered-single")
		}
		record(within("Drain request on a single control plane to its completion, no pod evicted", longest, promptly))
	})

	It("of a highly available control plane are drained", NodeTimeout(10*time.Minute), func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			request(ctx, worker, machineconfig.VerbUncordon, "rendered-done")
			Expect(e.SetTopology(ctx, e.Scenario.ControlPlaneTopology, e.Scenario.InfrastructureTopology)).To(Succeed())
		})
		Expect(e.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		// Requests complete without a drain until the controller has observed the topology.
		var took time.Duration
		tries := 0
		Eventually(ctx, func(ctx context.Context) bool {
			tries++
			took = request(ctx, worker, machineconfig.VerbDrain, fmt.Sprintf("rendered-%d", tries))
			return isCordoned(ctx, worker)
		}).Should(BeTrue(), "node %s is cordoned", worker)
		Expect(podsOn(ctx, worker)).To(BeEmpty())
		Eventually(ctx, func(ctx context.Context) (elsewhere int) {
			for _, node := range nodes(e) {
				elsewhere += len(podsOn(ctx, node))
			}
			return elsewhere
		}).Should(Equal(workers+1), "all pods run elsewhere")
		record(within(fmt.Sprintf("Drain of a worker with a highly available control plane and %d pods, request to completion", workers), took, waitTimeout))
	})
})
