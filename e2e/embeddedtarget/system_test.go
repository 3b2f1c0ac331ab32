// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/e2e/drains"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/scenario"
)

// waitTimeout is for one change by operators on a busy machine.
const waitTimeout = 3 * time.Minute

// TestMain runs four clusters in parallel on few processors too: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	logf.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	os.Exit(m.Run())
}

type up struct {
	*system
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
}

func options(scenario string, variant Variant) Options {
	times := cluster.SimulatedTimes()
	times.Settle = waitTimeout
	return Options{Scenario: scenario, Variant: variant, Times: times, Progress: os.Stderr}
}

func startUp(t *testing.T, name string, variant Variant) *up {
	t.Helper()
	s, err := start(t.Context(), options(name, variant))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return &up{s, t, t.Context()}
}

func (u *up) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

func (u *up) until(what string, condition func() (bool, error)) {
	u.t.Helper()
	err := wait.PollUntilContextTimeout(u.ctx, poll, waitTimeout, true, func(context.Context) (bool, error) { return condition() })
	if err != nil {
		u.t.Fatalf("%s: %v", what, err)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := start(t.Context(), options("none-sno", "tomorrow")); !errors.Is(err, ErrVariant) {
		t.Errorf("an unknown variant: %v", err)
	}
	if _, err := start(t.Context(), options("nowhere", SNO)); !errors.Is(err, scenario.ErrUnknown) {
		t.Errorf("an unknown scenario: %v", err)
	}
}

// A cluster with the modules (R-SUITE-2): the topology changes and back, its operators restart, and its logs are
// copied.
func TestSNO(t *testing.T) {
	t.Parallel()
	u := startUp(t, "none-sno-day2-workers", SNO)
	if !testing.Short() { // it takes a minute
		if output, err := u.hostSuite(); err != nil {
			t.Errorf("the suite of an operator's repository: %v\n%s", err, output)
		}
	}
	nodes, err := u.Cluster.Clientset().CoreV1().Nodes().List(u.ctx, metav1.ListOptions{})
	u.must(err)
	if len(nodes.Items) != 3 {
		t.Errorf("%d nodes, want one and two workers", len(nodes.Items))
	}
	u.must(u.setTopology(u.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
	for module, reason := range map[framework.Module]string{framework.Ingress: notNeeded, framework.EtcdGuard: notNeeded, framework.Approver: notNeeded} {
		_, err := u.WaitReason(u.ctx, module, waitTimeout, reason)
		u.must(err)
	}
	// A Deployment whose replicas and template change back before it is rolled out can remain as it is (U-TOP-15).
	u.until("every Deployment is rolled out", func() (bool, error) { return u.unfinished(u.ctx) == "", nil })
	u.must(u.outage(u.ctx, time.Second))
	// All operators restart. Programs that ended without an API server are not restarted, so this follows the outage.
	for _, module := range framework.AllModules() {
		u.must(u.restartOperator(u.ctx, string(module)))
	}
	if err := u.restartOperator(u.ctx, "nothing"); !errors.Is(err, ErrModule) {
		t.Errorf("an unknown module: %v", err)
	}
	u.must(u.setTopology(u.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	u.must(u.settled(u.ctx))
	for _, gone := range []string{"master-1", "master-2"} {
		if _, err := u.Cluster.Clientset().CoreV1().Nodes().Get(u.ctx, gone, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("node %s still exists: %v", gone, err)
		}
		pods, err := u.podsOf(u.ctx, gone)
		u.must(err)
		if len(pods) > 0 {
			t.Errorf("%d pods are left on node %s", len(pods), gone)
		}
	}
	folder := filepath.Join(t.TempDir(), "logs")
	u.must(u.Cluster.CopyLogs(folder))
	for _, name := range []string{"kube-apiserver", "ingress-operator", "auth-controller", "etcd-member-0", "audit"} {
		if info, err := os.Stat(filepath.Join(folder, name+".log")); err != nil || name != "etcd-member-0" && info.Size() == 0 {
			t.Errorf("the log of %s: %v", name, err)
		}
	}
	u.Stop()
	u.Stop() // does nothing
}

// A cluster with operators that vendor the modules: no controller runs where there is one, guards and drains follow the
// topology without another event, and a restart changes nothing.
func TestVendored(t *testing.T) {
	t.Parallel()
	u := startUp(t, "none-sno-day1-worker", Vendored)
	for _, module := range framework.AllModules() {
		controls := u.Cluster.Program(module.Controller().Name) != nil
		if hosted := module.HasHost() && u.Cluster.Program(module.Host().Name) != nil; hosted == controls {
			t.Errorf("%s: host %t, controller %t, want one of them", module, hosted, controls)
		}
	}
	request := machineconfig.Request{Verb: machineconfig.VerbDrain, Config: "one"}
	for _, node := range []string{"master-0", "worker-0"} {
		u.drain(node, request, false)
	}
	u.must(u.setTopology(u.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
	u.until("there are guards", func() (bool, error) { return u.guards(3) })
	u.must(u.restartOperator(u.ctx, string(framework.EtcdGuard)))
	u.workload("worker-0")
	request.Config = "two"
	u.drain("worker-0", request, true)
	request.Verb = machineconfig.VerbUncordon
	u.drain("worker-0", request, false)
	u.must(u.setTopology(u.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	u.until("there is no guard", func() (bool, error) { return u.guards(0) })
}

// A cluster with stock operators, and what their stand-ins do.
func TestBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute; make proof runs it")
	}
	t.Parallel()
	u := startUp(t, "none-sno-day1-worker", Baseline)

	// The router does not tolerate the taint of the control plane.
	if output, err := u.hostSuite(); err == nil || !strings.Contains(output, "SNO-ING-003") {
		t.Errorf("the suite of an operator's repository: %v\n%s", err, output)
	}

	// Neither a master nor a worker of a single control plane is drained.
	request := machineconfig.Request{Verb: machineconfig.VerbDrain, Config: "one"}
	for _, node := range []string{"master-0", "worker-0"} {
		u.drain(node, request, false)
	}

	// The guard controller only reacts to nodes and pods, not to the topology.
	u.must(u.SetTopology(u.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
	u.until("the nodes have the topology's annotation", func() (bool, error) {
		node, err := u.node("worker-0")
		return err == nil && node.Annotations[machineconfig.TopologyAnnotation] == string(configv1.HighlyAvailableTopologyMode), err
	})
	u.until("there is a guard after writes to nodes", func() (bool, error) { return u.guards(1) })

	// Now nodes are drained. The worker has no pods of operators.
	u.workload("worker-0")
	request.Config = "two"
	u.drain("worker-0", request, true)
	request.Verb = machineconfig.VerbUncordon
	u.drain("worker-0", request, false)

	// The guard controller reads the topology again after a restart.
	u.must(u.Cluster.Program(framework.MachineConfig.Host().Name).Terminate(u.ctx))
	u.must(u.SetTopology(u.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	if ok, err := u.guards(1); err != nil || !ok {
		t.Errorf("the guard was removed without an event of a node: %v", err)
	}
	u.must(u.restartOperator(u.ctx, string(framework.EtcdGuard)))
	u.until("there is no guard", func() (bool, error) { return u.guards(0) })
}

// hostSuite runs the suite of an operator's repository as its CI does, with only a kubeconfig.
func (u *up) hostSuite() (string, error) {
	u.t.Helper()
	root, err := programs.Root(u.ctx)
	u.must(err)
	cmd := exec.CommandContext(u.ctx, "go", "test", "-count=1", "./test/e2e", "-ginkgo.v")
	cmd.Dir = filepath.Join(root, "examples", "ingress-operator-library-go")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.Cluster.KubeconfigPath())
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (u *up) node(name string) (*corev1.Node, error) {
	return u.Cluster.Clientset().CoreV1().Nodes().Get(u.ctx, name, metav1.GetOptions{})
}

func (u *up) workload(node string) {
	u.t.Helper()
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
	u.must(u.Cluster.Client().Create(u.ctx, deployment))
	u.until("the workload runs", func() (bool, error) {
		err := u.Cluster.Client().Get(u.ctx, client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Status.AvailableReplicas == 1, err
	})
}

// drain writes a request, waits for its completion, and checks that the node was drained or left unchanged.
func (u *up) drain(node string, request machineconfig.Request, drained bool) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.ctx, waitTimeout)
	defer cancel()
	kube := u.Cluster.Clientset()
	offset, err := u.Cluster.AuditOffset(ctx)
	u.must(err)
	u.must(drains.WriteRequest(ctx, kube, node, request))
	u.must(drains.WaitForCompletion(ctx, kube, node, request))
	done, err := drains.Read(ctx, u.Cluster, offset, framework.MachineConfig.HostUser())
	u.must(err)
	if len(done.Evicted) > 0 != drained {
		u.t.Errorf("%s on node %s: evicted %v", request, node, done.Evicted)
	}
	live, err := u.node(node)
	u.must(err)
	if live.Spec.Unschedulable != drained {
		u.t.Errorf("%s on node %s: unschedulable is %t", request, node, live.Spec.Unschedulable)
	}
}

func (u *up) guards(want int) (bool, error) {
	pods, err := u.Cluster.Clientset().CoreV1().Pods(scenario.EtcdNamespace).List(u.ctx, metav1.ListOptions{LabelSelector: "app=guard"})
	if err != nil {
		return false, err
	}
	budget := &policyv1.PodDisruptionBudget{}
	err = u.Cluster.Client().Get(u.ctx, types.NamespacedName{Namespace: scenario.EtcdNamespace, Name: etcdguard.PodsBudgetName}, budget)
	return len(pods.Items) == want && apierrors.IsNotFound(err) == (want == 0), nil
}
