// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
)

var (
	changes  = flag.Int("changes", 100, "number of topology changes, and half as many drains; with fewer than 100 the 99th percentile is the maximum")
	idleTime = flag.Duration("idle", 5*time.Minute, "how long writes on an idle cluster are counted")
	nodes    = flag.Int("nodes", 2000, "nodes of the large cluster")
	pods     = flag.Int("pods", 20000, "pods of the large cluster")
	settle   = flag.Duration("settle", time.Minute, "how long a controller runs before its memory is read")
)

const (
	waitTimeout = 2 * time.Minute
	poll        = 100 * time.Millisecond
	mebi        = 1 << 20
	// specTimeout is for all topology changes, or for the large cluster and its idle time.
	specTimeout = NodeTimeout(time.Hour)
)

func TestBench(t *testing.T) {
	SetDefaultEventuallyTimeout(waitTimeout)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	suite.Run(t, "bench", "bench-e2e")
}

var _ = It("An embedded cluster runs its first pod within ten seconds of a warm start", Label("start"), specTimeout, func(ctx SpecContext) {
	// The first start may have to build Kubernetes; only the second one is warm.
	Expect(suite.Must(embedded.Start(ctx, embedded.Config{Progress: GinkgoWriter})).Stop()).To(Succeed())
	started := time.Now()
	c := suite.Must(embedded.Start(ctx, embedded.Config{}))
	DeferCleanup(c.Stop)
	Expect(c.AddNodes(ctx, embedded.NodeSpec{Name: "node", Roles: []string{"worker"}})).To(Succeed())
	pod := newPod("first", "")
	Expect(c.Client().Create(ctx, pod)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (corev1.PodPhase, error) {
		err := c.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase, err
	}).WithPolling(poll / 5).Should(Equal(corev1.PodRunning))
	took := time.Since(started)
	suite.Require(suite.Bench, suite.Row{
		What: "Embedded cluster, warm start to first pod Running", Measured: suite.Seconds(took), Bound: "< 10 s", Compared: "-", Held: took < 10*time.Second,
	})
})

var _ = It("Each controller needs little memory on a large cluster", Label("memory"), specTimeout, func(ctx SpecContext) {
	s, etcd := start(ctx, framework.Config{Scenario: "none-sno-day2-workers"})
	enlarge(ctx, s)
	stock := map[framework.Module]string{framework.Ingress: "stock ingress operator 159 MiB, machine-approver 46 MiB"}
	running := map[framework.Module]*embedded.Component{}
	for _, module := range framework.AllModules() {
		var args []string
		if module == framework.EtcdGuard {
			args = []string{etcd}
		}
		running[module] = suite.Must(s.RunController(ctx, module, args...))
	}
	for _, module := range framework.AllModules() {
		// Without a scheduler no rollout ends.
		suite.Must(s.WaitReason(ctx, module, waitTimeout, "AsExpected", "RouterRollingOut", "RollingOut", "Restarting"))
	}
	suite.Elapse(ctx, *settle)
	var rows []suite.Row
	for _, module := range framework.AllModules() {
		compared := "-"
		if stock[module] != "" {
			compared = stock[module]
		}
		what := fmt.Sprintf("%s idle, %d nodes and %d pods, %s after its start", module.Controller().Name, *nodes, *pods, *settle)
		rows = append(rows, memoryRow(what, running[module], compared))
	}
	suite.Require(suite.Bench, rows...)
})

// start starts a cluster of a host operator for each operand, the cluster-version-operator and a member of etcd. It
// returns the argument with the member's endpoint.
func start(ctx context.Context, config framework.Config) (s *framework.ScenarioCluster, etcd string) {
	GinkgoHelper()
	config.Progress, config.VersionOperator, config.QuorumGuard = GinkgoWriter, true, true
	config.Hosts = map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil}
	s = suite.Must(framework.Start(ctx, config))
	DeferCleanup(s.Stop)
	Expect(s.InstallStockApprover(ctx)).To(Succeed()) // needs a controller manager, which enlarge ends
	return s, "--etcd-endpoints=" + suite.Must(etcdmembers.Start(ctx, s.Cluster, 1)).Endpoints[0]
}

// enlarge fills the cluster. Nothing but the controllers needs to react to the objects.
func enlarge(ctx context.Context, s *framework.ScenarioCluster) {
	GinkgoHelper()
	for _, name := range []string{embedded.Kubelets, embedded.Scheduler, embedded.ControllerManager} {
		Expect(s.Cluster.Component(name).Kill()).To(Succeed())
	}
	config := s.Cluster.RESTConfig()
	config.QPS, config.Burst = -1, 0
	kube := suite.Must(kubernetes.NewForConfig(config))
	each := func(number int, create func(int)) {
		workqueue.ParallelizeUntil(ctx, 32, number, func(i int) {
			defer GinkgoRecover()
			create(i)
		})
	}
	each(*nodes, func(i int) {
		name := fmt.Sprintf("crowd-%05d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		suite.Must(kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}))
	})
	each(*pods, func(i int) {
		pod := newPod(fmt.Sprintf("crowd-%06d", i), fmt.Sprintf("crowd-%05d", i%*nodes))
		suite.Must(kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{}))
	})
}

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "registry.invalid/none",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		}}},
	}
}

func setTopology(ctx context.Context, s *framework.ScenarioCluster, single bool) {
	GinkgoHelper()
	mode := configv1.HighlyAvailableTopologyMode
	if single {
		mode = configv1.SingleReplicaTopologyMode
	}
	Expect(s.SetTopology(ctx, mode, mode)).To(Succeed())
}

// Bounds of a process in MiB: of its anonymous memory, and of its RSS, which limits the working set that the kubelet
// reports.
const anonymousBound, residentBound = 48, 128

func memoryRow(what string, process *embedded.Component, compared string) suite.Row {
	GinkgoHelper()
	used := suite.Must(suite.Must(procfs.NewProc(process.PID())).NewStatus())
	mib := func(bytes uint64) float64 { return float64(bytes) / mebi }
	return suite.Row{
		What: what, Measured: fmt.Sprintf("RSS %.1f MiB (anonymous %.1f, peak %.1f)", mib(used.VmRSS), mib(used.RssAnon), mib(used.VmHWM)),
		Bound: fmt.Sprintf("anonymous < %d MiB, RSS < %d MiB", anonymousBound, residentBound), Compared: compared,
		Held: used.RssAnon < anonymousBound*mebi && used.VmRSS < residentBound*mebi,
	}
}

// timesRow summarises durations, whose 99th percentile a bound limits, 0 for none.
func timesRow(what string, times []time.Duration, bound time.Duration, compared string) suite.Row {
	times = slices.Sorted(slices.Values(times))
	p99 := percentile(times, 99)
	row := suite.Row{
		What: what, Measured: fmt.Sprintf("p50 %s, p99 %s, max %s", millis(percentile(times, 50)), millis(p99), millis(times[len(times)-1])),
		Bound: "-", Compared: compared, Held: true,
	}
	if bound > 0 {
		row.Bound, row.Held = "p99 < "+millis(bound), p99 < bound
	}
	return row
}

// percentile returns a percentile of sorted durations by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

func TestTimesRow(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(100-i)*time.Millisecond)
	}
	for bound, want := range map[time.Duration]suite.Row{
		0:                      {What: "a", Measured: "p50 50 ms, p99 99 ms, max 100 ms", Bound: "-", Compared: "b", Held: true},
		100 * time.Millisecond: {What: "a", Measured: "p50 50 ms, p99 99 ms, max 100 ms", Bound: "p99 < 100 ms", Compared: "b", Held: true},
		99 * time.Millisecond:  {What: "a", Measured: "p50 50 ms, p99 99 ms, max 100 ms", Bound: "p99 < 99 ms", Compared: "b"},
	} {
		if got := timesRow("a", times, bound, "b"); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := timesRow("a", times[:1], 0, "b").Measured; got != "p50 100 ms, p99 100 ms, max 100 ms" {
		t.Error(got)
	}
}
