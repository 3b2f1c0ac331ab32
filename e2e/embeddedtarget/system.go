// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/fakes/operators"
	"github.com/solonode/sno/testcluster/scenario"
)

// Variant is a variant of the operators.
type Variant string

var (
	// SNO has operators that vendor the modules, and controllers.
	SNO = Variant("sno")
	// Baseline has stock operators.
	Baseline = Variant("baseline")
)

// ErrVariant means that no variant has the name.
var ErrVariant = errors.New("unknown variant")

func (v Variant) hosts() (map[harness.Module][]string, error) {
	switch v {
	case SNO:
		return map[harness.Module][]string{harness.Ingress: nil, harness.Console: nil, harness.Auth: nil}, nil
	case Baseline:
		today := []string{"--stock"}
		return map[harness.Module][]string{harness.Ingress: today, harness.Console: today, harness.Auth: today}, nil
	}
	return nil, fmt.Errorf("%w %q: choose %s or %s", ErrVariant, v, SNO, Baseline)
}

// Programs returns the programs that the clusters of a variant need.
func (v Variant) Programs() ([]programs.Program, error) {
	hosts, err := v.hosts()
	if err != nil {
		return nil, err
	}
	var needed []programs.Program
	for _, module := range harness.AllModules() {
		if _, ok := hosts[module]; ok {
			needed = append(needed, module.Host())
		}
		if v == SNO {
			needed = append(needed, module.Controller())
		}
	}
	return needed, nil
}

type system struct {
	*harness.Environment
	variant          Variant
	settle           time.Duration
	ignoreConditions bool
	// standIns are the stand-ins of stock operators without a host.
	standIns map[harness.Module]*operators.Process
	stop     sync.Once

	mu sync.Mutex
	// added are control-plane nodes that a topology has added, and removed those that the next one has removed.
	added, removed []string
}

// start returns when the operators and controllers have settled and the day-2 workers have joined.
func start(ctx context.Context, o Options) (*system, error) {
	hosts, err := o.Variant.hosts()
	if err != nil {
		return nil, err
	}
	planned, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	// With an external control plane the release has no guard of etcd.
	guarded := o.Variant == SNO && planned.ControlPlaneTopology != configv1.ExternalTopologyMode
	r, err := harness.Start(ctx, harness.Config{Scenario: o.Scenario, Hosts: hosts, QuorumGuard: guarded, RealMinReadySeconds: o.RealMinReadySeconds, APIServer: o.APIServer, Keep: o.Keep, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	s := &system{Environment: r, variant: o.Variant, settle: o.Times.Settle, ignoreConditions: o.IgnoreConditions, standIns: map[harness.Module]*operators.Process{}}
	if err := s.bringUp(ctx, guarded); err != nil {
		// The reason is often in a log.
		err = fmt.Errorf("set up %s, %s: %w", o.Scenario, o.Variant, errors.Join(err, s.logTails()))
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *system) bringUp(ctx context.Context, guarded bool) error {
	// Where nodes may request certificates, an unknown client may request those of an unknown node.
	if err := joining.Prepare(ctx, s.Cluster); err != nil {
		return err
	}
	begin := s.startStandIns
	if s.variant == SNO {
		begin = func(ctx context.Context) error { return s.controllers(ctx, guarded) }
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if err := s.waitSettled(ctx); err != nil {
		return err
	}
	if s.Scenario.Day2Workers == 0 {
		return nil
	}
	if err := s.Scenario.AddDay2Workers(ctx, s.Cluster); err != nil {
		return err
	}
	return s.waitSettled(ctx)
}

// waitSettled waits until the cluster has settled, or for as long as that could take with ignoreConditions.
func (s *system) waitSettled(ctx context.Context) error {
	err := s.settled(ctx)
	if s.ignoreConditions && ctx.Err() == nil {
		return nil
	}
	return err
}

// controllers starts the controllers, and etcd for one of them.
func (s *system) controllers(ctx context.Context, guarded bool) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, module := range harness.AllModules() {
		group.Go(func() error {
			var args []string
			if module == harness.EtcdGuard && guarded {
				etcd, err := etcdmembers.Start(groupCtx, s.Cluster, s.Scenario.Masters+s.Scenario.Arbiters)
				if err != nil {
					return err
				}
				args = []string{"--etcd-endpoints=" + strings.Join(etcd.Endpoints, ",")}
			}
			_, err := s.RunController(groupCtx, module, args...)
			return err
		})
	}
	return group.Wait() //nolint:wrapcheck // describe the fault
}

// startStandIns starts what the stock operators do in addition to the hosts.
func (s *system) startStandIns(ctx context.Context) error {
	if err := s.InstallStockApprover(ctx); err != nil {
		return err
	}
	if err := s.placeByDefault(ctx); err != nil {
		return err
	}
	for module, one := range map[harness.Module]struct {
		user     string
		operator operators.Operator
	}{
		harness.EtcdGuard: {operators.EtcdUser, operators.Etcd}, harness.MachineConfig: {operators.MachineConfigUser, operators.MachineConfig},
	} {
		if module == harness.EtcdGuard && s.Scenario.ControlPlaneTopology == configv1.ExternalTopologyMode {
			continue // the etcd operator is outside of the cluster
		}
		process, err := s.RunStandIn(ctx, one.user, one.operator)
		if err != nil {
			return err
		}
		s.standIns[module] = process
	}
	return nil
}

// placeByDefault writes the default placement that the installer writes for one control-plane node without a load
// balancer, and the ingress operator on such a node (U-ING-3, U-TOP-6). The enhancement, whose rows the scenarios are,
// has no such field.
func (s *system) placeByDefault(ctx context.Context) error {
	if s.Scenario.Platform != configv1.NonePlatformType || s.Scenario.ControlPlaneTopology != configv1.SingleReplicaTopologyMode {
		return nil
	}
	ingress := &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: scenario.ClusterName}}
	body := fmt.Appendf(nil, `{"status":{"defaultPlacement":%q}}`, configv1.DefaultPlacementControlPlane)
	err := s.Cluster.Client().Status().Patch(ctx, ingress, client.RawPatch(types.MergePatchType, body), client.FieldOwner(scenario.InstallerManager))
	if err != nil {
		return fmt.Errorf("write the default placement: %w", err)
	}
	return nil
}

// Stop stops everything. Further calls do nothing.
func (s *system) Stop() {
	s.stop.Do(func() {
		for _, process := range s.standIns {
			process.Stop()
		}
		s.Environment.Stop()
	})
}
