// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
)

// Bounds of a process in MiB: of its anonymous memory, and of its RSS, which limits the working set that the kubelet
// reports.
const anonymousBound, residentBound = 48, 128

func memoryRow(what string, used processMemory, compared string) Row {
	return Row{
		What: what, Measured: used.String(), Bound: fmt.Sprintf("anonymous < %d MiB, RSS < %d MiB", anonymousBound, residentBound), Compared: compared,
		Held: used.anonymous < anonymousBound*mebi && used.resident < residentBound*mebi,
	}
}

// memory reads the memory of all controllers, which run at the same time, on a small and on a large cluster.
func memory(ctx context.Context, o Options) ([]Row, error) {
	s, err := framework.Start(ctx, framework.Config{
		Scenario: "none-sno-day2-workers", Progress: o.Progress, VersionOperator: true, QuorumGuard: true,
		Hosts: map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
	})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	etcd, err := etcdmembers.Start(ctx, s.Cluster, 1)
	if err != nil {
		return nil, err
	}
	arguments := map[framework.Module][]string{framework.EtcdGuard: {"--etcd-endpoints=" + etcd.Endpoints[0]}}
	small, err := controllersMemory(ctx, o, s, arguments)
	if err != nil {
		return nil, err
	}
	// The objects of the large cluster need neither kubelets nor a scheduler.
	for _, name := range []string{embedded.Kubelets, embedded.Scheduler, embedded.ControllerManager} {
		if err := s.Cluster.Component(name).Kill(); err != nil {
			return nil, err
		}
	}
	if err := crowd(ctx, o, s); err != nil {
		return nil, err
	}
	large, err := controllersMemory(ctx, o, s, arguments)
	if err != nil {
		return nil, err
	}
	compared := map[framework.Module]string{framework.Ingress: "stock ingress operator 159 MiB, machine-approver 46 MiB"}
	var rows []Row
	var all processMemory
	for _, module := range measured() {
		used, at := large[module], compared[module]
		if at == "" {
			at = "-"
		}
		all.add(used)
		what := fmt.Sprintf("%s idle, %d nodes and %d pods, %s after its start", module.Controller().Name, o.Nodes, o.Pods, o.Settle)
		rows = append(rows, memoryRow(what, used, at), Row{
			What: module.Controller().Name + " idle, 1 node", Measured: small[module].String(), Bound: "-", Compared: "-", Held: true,
		})
	}
	return append(rows, Row{
		What: fmt.Sprintf("All %d controllers together, %d nodes and %d pods", len(measured()), o.Nodes, o.Pods), Measured: all.String(),
		Bound: "-", Compared: "stock ingress operator alone 159 MiB", Held: true,
	}), nil
}

func measured() []framework.Module {
	return append(framework.Modules(), framework.EtcdGuard, framework.MachineConfig, framework.Approver)
}

// controllersMemory runs all controllers until they have settled, reads their memory and stops them.
func controllersMemory(ctx context.Context, o Options, s *framework.ScenarioCluster, arguments map[framework.Module][]string) (map[framework.Module]processMemory, error) {
	running := map[framework.Module]*embedded.Component{}
	for _, module := range measured() {
		controller, err := s.RunController(ctx, module, arguments[module]...)
		if err != nil {
			return nil, err
		}
		running[module] = controller
	}
	for module := range running {
		// Without a scheduler no rollout ends.
		if _, err := s.WaitReason(ctx, module, waitTimeout, "AsExpected", "RouterRollingOut", "RollingOut", "Restarting"); err != nil {
			return nil, err
		}
	}
	logf(o.Progress, "Running the controllers for %s", o.Settle)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(o.Settle):
	}
	used := map[framework.Module]processMemory{}
	for module, controller := range running {
		var err error
		if used[module], err = readMemory(controller.PID()); err != nil {
			return nil, err
		}
	}
	ending, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for _, controller := range running {
		if err := controller.Terminate(ending); err != nil {
			return nil, err
		}
	}
	return used, nil
}

type processMemory struct{ resident, anonymous, peak int64 }

func (m processMemory) String() string {
	return fmt.Sprintf("RSS %.1f MiB (anonymous %.1f, peak %.1f)", mib(m.resident), mib(m.anonymous), mib(m.peak))
}

func (m *processMemory) add(other processMemory) {
	m.resident += other.resident
	m.anonymous += other.anonymous
	m.peak += other.peak
}

func mib(bytes int64) float64 { return float64(bytes) / mebi }

func readMemory(pid int) (processMemory, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return processMemory{}, fmt.Errorf("%w: memory of process %d: %w", errFigures, pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return processMemory{}, fmt.Errorf("%w: memory of process %d: %w", errFigures, pid, err)
	}
	return processMemory{resident: int64(status.VmRSS), anonymous: int64(status.RssAnon), peak: int64(status.VmHWM)}, nil //nolint:gosec // bytes of one machine
}

func crowd(ctx context.Context, o Options, s *framework.ScenarioCluster) error {
	config := s.Cluster.RESTConfig()
	config.QPS, config.Burst = -1, 0
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	started := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	const creators = 32
	group.SetLimit(creators)
	for i := range o.Nodes {
		group.Go(func() error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%05d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("crowd-%05d", i)}}}
			_, err := kube.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{})
			return err
		})
	}
	for i := range o.Pods {
		group.Go(func() error {
			_, err := kube.CoreV1().Pods(metav1.NamespaceDefault).Create(groupCtx, newPod(fmt.Sprintf("crowd-%06d", i), fmt.Sprintf("crowd-%05d", i%o.Nodes)), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill the cluster: %w", err)
	}
	logf(o.Progress, "Created %d nodes and %d pods in %s", o.Nodes, o.Pods, time.Since(started).Round(time.Second))
	return nil
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
