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

// Variant says who shapes the cluster.
type Variant string

// The variants.
var (
	// SNO is operators that vendor the modules, and our controllers.
	SNO = Variant("sno")
	// Baseline is operators as they are today.
	Baseline = Variant("baseline")
)

// ErrVariant says that there is no variant of a name.
var ErrVariant = errors.New("unknown variant")

// hosts are the host operators of a variant, with their arguments.
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

// Programs are those that the clusters of a variant need.
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

// system is a cluster with everything that shapes it.
type system struct {
	*harness.Environment
	variant Variant
	settle  time.Duration
	anyhow  bool
	// stand are the stand-ins for today's operators.
	stand map[harness.Module]*operators.Process
	stop  sync.Once

	mu sync.Mutex
	// added are control-plane nodes that came with a topology, gone those that left with the next one.
	added, gone []string
}

// start returns when the operators and the controllers have nothing left to do, and the workers of later have joined.
func start(ctx context.Context, o Options) (*system, error) {
	hosts, err := o.Variant.hosts()
	if err != nil {
		return nil, err
	}
	planned, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	// Where the control plane is elsewhere, the release has no guard of etcd.
	guarded := o.Variant == SNO && planned.ControlPlaneTopology != configv1.ExternalTopologyMode
	r, err := harness.Start(ctx, harness.Config{Scenario: o.Scenario, Hosts: hosts, QuorumGuard: guarded, RealMinReadySeconds: o.RealMinReadySeconds, APIServer: o.APIServer, Keep: o.Keep, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	s := &system{Environment: r, variant: o.Variant, settle: o.Times.Settle, anyhow: o.IgnoreConditions, stand: map[harness.Module]*operators.Process{}}
	if err := s.bringUp(ctx, guarded); err != nil {
		// The reason is often in a log.
		err = fmt.Errorf("set up %s, %s: %w", o.Scenario, o.Variant, errors.Join(err, s.lastWords()))
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *system) bringUp(ctx context.Context, guarded bool) error {
	// Where nodes may ask for certificates, somebody may ask for those of a node that nobody knows.
	if err := joining.Prepare(ctx, s.Cluster); err != nil {
		return err
	}
	begin := s.standIns
	if s.variant == SNO {
		begin = func(ctx context.Context) error { return s.controllers(ctx, guarded) }
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	if s.Scenario.Day2Workers == 0 {
		return nil
	}
	if err := s.Scenario.AddDay2Workers(ctx, s.Cluster); err != nil {
		return err
	}
	return s.rest(ctx)
}

// rest waits until the cluster has settled, or is as far as it gets where that is enough.
func (s *system) rest(ctx context.Context) error {
	err := s.settled(ctx)
	if s.anyhow && ctx.Err() == nil {
		return nil
	}
	return err
}

// controllers starts ours, the members of etcd that one of them asks, and the stock approver that another one is about.
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

// standIns starts what today's operators do besides the hosts.
func (s *system) standIns(ctx context.Context) error {
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
			continue // the etcd operator is where etcd is
		}
		process, err := s.RunStandIn(ctx, one.user, one.operator)
		if err != nil {
			return err
		}
		s.stand[module] = process
	}
	return nil
}

// placeByDefault writes what today's installer writes where there is one control-plane node and no load balancer, and today's ingress
// operator on such a node that it finds (U-ING-3, U-TOP-6). The enhancement whose rows the scenarios are knows no such field.
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

// Stop ends everything. Further calls do nothing.
func (s *system) Stop() {
	s.stop.Do(func() {
		for _, process := range s.stand {
			process.Stop()
		}
		s.Environment.Stop()
	})
}
