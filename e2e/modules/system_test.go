// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/scenario"
)

const asExpected, notNeeded = "AsExpected", "NotNeeded"

// system is a cluster for the conformance suite, of one spec.
type system struct {
	*embeddedtarget.System
	ctx    context.Context //nolint:containedctx // of the spec
	kube   client.Client
	target cluster.Target
}

func startSystem(ctx context.Context, o embeddedtarget.Options) *system {
	GinkgoHelper()
	s := steps.StartSystem(ctx, o)
	return &system{s, ctx, s.Cluster.Client(), s.Target()}
}

// patient waits longer than a run of the suite, for changes on a busy machine.
func patient(name string, variant embeddedtarget.Variant) embeddedtarget.Options {
	times := cluster.SimulatedTimes()
	times.Settle = steps.Timeout
	return embeddedtarget.Options{Scenario: name, Variant: variant, Times: times}
}

// run runs checks. What begin does happens between the start and the acts of disruptive checks.
func (s *system) run(target cluster.Target, selection runner.Selection, begin ...func()) report.Report {
	GinkgoHelper()
	run := suite.Must(runner.New(s.ctx, target, selection))
	defer func() { Expect(run.Close(s.ctx)).To(Succeed(), "the run leaves something behind") }()
	Expect(run.Start(s.ctx)).To(Succeed())
	for _, do := range begin {
		do()
	}
	for _, check := range catalogue.All() {
		suite.Must(run.Result(s.ctx, check.ID))
	}
	return run.Report()
}

// tiers selects all checks of some tiers.
func tiers(tiers ...catalogue.Tier) runner.Selection { return runner.Selection{Tiers: tiers} }

func byID(r report.Report) map[string]report.Result {
	all := map[string]report.Result{}
	for _, result := range r.Results {
		all[result.ID] = result
	}
	return all
}

func statuses(results map[string]report.Result) map[string]report.Status {
	all := map[string]report.Status{}
	for id, result := range results {
		all[id] = result.Status
	}
	return all
}

var _ = Describe("A cluster of the conformance suite", suite.First, func() {
	It("with the modules follows the topology and back, and restarts of its operators (R-SUITE-2)", Label(suite.Smoke), func(ctx SpecContext) {
		s := startSystem(ctx, patient("none-sno-day2-workers", embeddedtarget.SNO))
		nodes := &corev1.NodeList{}
		Expect(s.kube.List(ctx, nodes)).To(Succeed())
		Expect(nodes.Items).To(HaveLen(3), "one node and two workers")
		Expect(s.target.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		for _, module := range []framework.Module{framework.Ingress, framework.EtcdGuard, framework.Approver} {
			suite.Must(s.WaitReason(ctx, module, steps.Timeout, notNeeded))
		}
		// A Deployment whose replicas and template change back before it is rolled out can remain as it is (U-TOP-15).
		Eventually(ctx, s.Unfinished).Should(BeEmpty(), "every Deployment is rolled out")
		Expect(s.target.Outage(ctx, time.Second)).To(Succeed())
		// Programs that ended without an API server are not restarted, so this follows the outage.
		for _, module := range framework.AllModules() {
			Expect(s.target.RestartOperator(ctx, string(module))).To(Succeed())
		}
		Expect(s.target.RestartOperator(ctx, "nothing")).To(MatchError(embeddedtarget.ErrModule))
		Expect(s.target.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
		Expect(s.Settled(ctx)).To(Succeed())
		pods := &corev1.PodList{}
		Expect(s.kube.List(ctx, pods)).To(Succeed())
		for _, gone := range []string{"master-1", "master-2"} {
			Expect(apierrors.IsNotFound(s.kube.Get(ctx, client.ObjectKey{Name: gone}, &corev1.Node{}))).To(BeTrue(), "node %s is removed", gone)
			Expect(slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == gone })).To(BeFalse(), "pods are left on %s", gone)
		}
		folder := filepath.Join(GinkgoT().TempDir(), "logs")
		Expect(s.Cluster.CopyLogs(folder)).To(Succeed())
		Expect(filepath.Join(folder, "etcd-member-0.log")).To(BeARegularFile())
		for _, name := range []string{"kube-apiserver", "ingress-operator", "auth-controller", "audit"} {
			Expect(os.ReadFile(filepath.Join(folder, name+".log"))).NotTo(BeEmpty(), "the log of %s", name)
		}
		s.Stop()
		s.Stop() // does nothing
	})

	It("with operators that vendor the modules has guards and drains that follow the topology without a controller", Label(suite.Smoke), func(ctx SpecContext) {
		s := startSystem(ctx, patient("none-sno-day1-worker", embeddedtarget.Vendored))
		for _, module := range framework.AllModules() {
			Expect(s.Cluster.Program(module.Host().Name)).NotTo(BeNil())
			Expect(s.Cluster.Program(module.Controller().Name)).To(BeNil())
		}
		s.neverDrained("one")
		Expect(s.target.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		Eventually(ctx, s.guards).Should(Equal(3))
		Expect(s.RestartOperator(ctx, framework.EtcdGuard)).To(Succeed())
		s.drainedAndBack("worker-0", "two")
		Expect(s.target.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
		Eventually(ctx, s.guards).Should(BeZero())
	})

	It("with stand-ins for today's operators follows the topology where they do", Label(suite.Long), func(ctx SpecContext) {
		s := startSystem(ctx, patient("none-sno-day1-worker", embeddedtarget.Baseline))
		output, err := s.hostSuite()
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("SNO-ING-003"), "the router does not tolerate the taint of the control plane")
		s.neverDrained("one")

		// The guard controller only reacts to nodes and pods, not to the topology.
		Expect(s.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(s.node("worker-0").Annotations).To(HaveKeyWithValue(machineconfig.TopologyAnnotation, string(configv1.HighlyAvailableTopologyMode)))
		}).Should(Succeed())
		Eventually(ctx, s.guards).Should(Equal(1), "there is a guard after writes to nodes")
		s.drainedAndBack("worker-0", "two")

		// It reads the topology again after a restart.
		Expect(s.Cluster.Program(framework.MachineConfig.Host().Name).Terminate(ctx)).To(Succeed())
		Expect(s.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
		Expect(s.guards()).To(Equal(1), "a guard stays without an event of a node")
		Expect(s.RestartOperator(ctx, framework.EtcdGuard)).To(Succeed())
		Eventually(ctx, s.guards).Should(BeZero())
	})

	It("with the modules passes the suite of an operator's repository, which has only a kubeconfig", Label(suite.Long), func(ctx SpecContext) {
		s := startSystem(ctx, patient("none-sno-day2-workers", embeddedtarget.SNO))
		output, err := s.hostSuite()
		Expect(err).NotTo(HaveOccurred(), output)
	})
})

// hostSuite runs the suite of an operator's repository as its CI does.
func (s *system) hostSuite() (string, error) {
	cmd := exec.CommandContext(s.ctx, "go", "test", "-count=1", "./test/e2e", "-ginkgo.v")
	cmd.Dir = filepath.FromSlash(programs.IngressExample.Module)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Cluster.KubeconfigPath())
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (s *system) node(name string) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(s.kube.Get(s.ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

// neverDrained requests drains of a master and of a worker of a single control plane, which does nothing.
func (s *system) neverDrained(config string) {
	GinkgoHelper()
	for _, node := range []string{"master-0", "worker-0"} {
		s.drain(node, machineconfig.Request{Verb: machineconfig.VerbDrain, Config: config}, false)
	}
}

// drainedAndBack requests a drain of a node with a pod, and then an uncordon.
func (s *system) drainedAndBack(node, config string) {
	GinkgoHelper()
	labels := map[string]string{"app": "workload"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workload"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: node},
				Containers:   []corev1.Container{{Name: "main", Image: "none"}},
			}},
		},
	}
	Expect(s.kube.Create(s.ctx, deployment)).To(Succeed())
	Eventually(s.ctx, func(g Gomega) {
		g.Expect(s.kube.Get(s.ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
	}).Should(Succeed())
	s.drain(node, machineconfig.Request{Verb: machineconfig.VerbDrain, Config: config}, true)
	s.drain(node, machineconfig.Request{Verb: machineconfig.VerbUncordon, Config: config}, false)
}

// drain writes a request, waits for its completion, and checks that the node was drained or left unchanged.
func (s *system) drain(node string, request machineconfig.Request, drained bool) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(s.ctx, steps.Timeout)
	defer cancel()
	offset := suite.Must(s.Cluster.AuditOffset(ctx))
	drains.WriteRequest(ctx, s.Cluster.Clientset(), node, request)
	drains.WaitForCompletion(ctx, s.Cluster.Clientset(), node, request)
	done := drains.Read(ctx, s.Cluster, offset, framework.MachineConfig.HostUser())
	Expect(len(done.Evicted) > 0).To(Equal(drained), "%s on node %s evicted %v", request, node, done.Evicted)
	Expect(s.node(node).Spec.Unschedulable).To(Equal(drained), "%s on node %s", request, node)
}

var errBudget = errors.New("there are guards and no budget, or a budget and no guards")

// guards returns the number of guards, which have a budget.
func (s *system) guards() (int, error) {
	pods := &corev1.PodList{}
	if err := s.kube.List(s.ctx, pods, client.InNamespace(scenario.EtcdNamespace), client.MatchingLabels{"app": "guard"}); err != nil {
		return 0, err
	}
	err := s.kube.Get(s.ctx, types.NamespacedName{Namespace: scenario.EtcdNamespace, Name: etcdguard.PodsBudgetName}, &policyv1.PodDisruptionBudget{})
	if apierrors.IsNotFound(err) != (len(pods.Items) == 0) {
		return 0, errBudget
	}
	return len(pods.Items), client.IgnoreNotFound(err)
}
