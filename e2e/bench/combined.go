// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology"
)

const (
	combinedBound      = time.Second
	combinedMillicores = 5
	stockCombined      = "five stock operators: 683 MiB, 18 millicores, 12 writes a minute"
)

type combined struct {
	*framework.ScenarioCluster
	arguments []string
}

// allCombined measures how fast everything follows a topology change, and the idle cost on a large cluster.
func allCombined(ctx context.Context, o Options) ([]Row, error) {
	s, err := framework.Start(ctx, framework.Config{
		Scenario: "ha", Release: scenario.OldRelease, Progress: o.Progress, VersionOperator: true, QuorumGuard: true,
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
	all := combined{s, []string{"--etcd-endpoints=" + etcd.Endpoints[0]}}
	if err := both(ctx, s, true); err != nil {
		return nil, err
	}
	if _, err := all.start(ctx); err != nil {
		return nil, err
	}
	changing := o
	changing.TopologyChanges *= 2 // with fewer than 100 the 99th percentile is the maximum
	rows, err := all.change(ctx, changing)
	if err != nil {
		return rows, err
	}
	// Nothing but the controllers needs to react to the objects of the large cluster.
	for _, name := range []string{embedded.Kubelets, embedded.Scheduler, embedded.ControllerManager} {
		if err := s.Cluster.Component(name).Kill(); err != nil {
			return rows, err
		}
	}
	if err := crowd(ctx, o, s); err != nil {
		return rows, err
	}
	process, err := all.start(ctx)
	if err != nil {
		return rows, err
	}
	idle, err := all.idle(ctx, o, process)
	return append(rows, idle...), err
}

// start starts or restarts the process, and returns when every module has settled on one node.
func (c combined) start(ctx context.Context) (*embedded.Component, error) {
	process, err := c.RunAllControllers(ctx, c.arguments...)
	if err != nil {
		return nil, err
	}
	return process, c.waitSettled(ctx, true)
}

// waitSettled waits until every module has settled and the leader election has the topology's durations.
func (c combined) waitSettled(ctx context.Context, single bool) error {
	for _, module := range framework.AllModules() {
		want := "AsExpected"
		if both := module == framework.Auth || module == framework.MachineConfig; !single && !both {
			want = "NotNeeded"
		}
		if _, err := c.WaitReason(ctx, module, waitTimeout, want); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	mode := configv1.HighlyAvailableTopologyMode
	if single {
		mode = configv1.SingleReplicaTopologyMode
	}
	want := int32(topology.LeaderElection(mode).LeaseDuration / time.Second)
	key := client.ObjectKey{Namespace: framework.SystemNamespace, Name: framework.AllLease}
	err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		err := c.Cluster.Client().Get(ctx, key, lease)
		return ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) == want, err
	})
	if err != nil {
		return fmt.Errorf("wait for the leader election of the topology: %w", err)
	}
	return c.quiet(ctx)
}

// quiet waits until the process has logged nothing for a second: its Lease exists before its controllers work again.
func (c combined) quiet(ctx context.Context) error {
	log := c.Cluster.Program(programs.KubectlSNO.Name).LogPath()
	size, since := int64(-1), time.Now()
	err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(context.Context) (bool, error) {
		info, err := os.Stat(log)
		if err != nil {
			return false, err
		}
		if info.Size() != size {
			size, since = info.Size(), time.Now()
		}
		return time.Since(since) >= time.Second, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s logs nothing: %w", programs.KubectlSNO.Name, err)
	}
	return nil
}

// change measures each topology change until watches of another process have received the last of the objects. The host
// operators react to the same change, and their rollouts take most of the processors for the first second.
func (c combined) change(ctx context.Context, o Options) ([]Row, error) {
	objects := []patched{patchedIngressController, patchedDownloads, patchedAuthentication, patchedGuard, patchedStockApprover}
	watches := make([]watch.Interface, len(objects))
	for i, object := range objects {
		watching, err := object.watch(ctx, c.ScenarioCluster)
		if err != nil {
			return nil, err
		}
		defer watching.Stop()
		watches[i] = watching
	}
	var last []time.Duration
	each := make([][]time.Duration, len(objects))
	single := true
	for n := range o.TopologyChanges {
		single = !single
		started := time.Now()
		if err := both(ctx, c.ScenarioCluster, single); err != nil {
			return nil, fmt.Errorf("topology change %d: %w", n+1, err)
		}
		group, took := errgroup.Group{}, make([]time.Duration, len(objects))
		for i, object := range objects {
			group.Go(func() error {
				err := object.follow(watches[i], single)
				took[i] = time.Since(started)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, fmt.Errorf("topology change %d: %w", n+1, err)
		}
		for i := range objects {
			each[i] = append(each[i], took[i])
		}
		last = append(last, slices.Max(took))
		// The next change begins when all have settled.
		if err := c.waitSettled(ctx, single); err != nil {
			return nil, err
		}
	}
	if !single {
		if err := both(ctx, c.ScenarioCluster, true); err != nil {
			return nil, err
		}
		if err := c.waitSettled(ctx, true); err != nil {
			return nil, err
		}
	}
	slices.Sort(last)
	const what, of = "Topology change to everything patched, all modules in one process, while three host operators roll out on the same processors", "of these, the "
	rows := []Row{changesRow(fmt.Sprintf("%s, %d changes", what, o.TopologyChanges), last, combinedBound, "-")}
	for i, object := range objects {
		slices.Sort(each[i])
		rows = append(rows, changesRow(of+object.what, each[i], 0, "-"))
	}
	return rows, nil
}

func (c combined) idle(ctx context.Context, o Options, process *embedded.Component) ([]Row, error) {
	logf(o.Progress, "Running all modules for %s", o.Settle)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(o.Settle):
	}
	before, began, err := processorTime(process.PID())
	if err != nil {
		return nil, err
	}
	on := fmt.Sprintf("kubectl-sno run, all modules, idle, %d nodes and %d pods", o.Nodes, o.Pods)
	rows, err := atRest(ctx, o, c.ScenarioCluster, on, framework.AllUser)
	if err != nil {
		return nil, err
	}
	after, ended, err := processorTime(process.PID())
	if err != nil {
		return nil, err
	}
	used, err := readMemory(process.PID())
	if err != nil {
		return nil, err
	}
	const thousandths = 1000
	load := thousandths * (after - before) / ended.Sub(began).Seconds()
	return append(rows, memoryRow(on+": memory", used, stockCombined), Row{
		What: on + ": processor over " + o.IdleTime.String(), Measured: fmt.Sprintf("%.1f millicores", load),
		Bound: fmt.Sprintf("< %d millicores", combinedMillicores), Compared: stockCombined, Held: load < combinedMillicores,
	}), nil
}

func processorTime(pid int) (float64, time.Time, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("%w: %s: %w", errFigures, programs.KubectlSNO.Name, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("%w: %s: %w", errFigures, programs.KubectlSNO.Name, err)
	}
	return stat.CPUTime(), time.Now(), nil
}
