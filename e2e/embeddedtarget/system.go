// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

// Variant is a variant of the operators.
type Variant string

var (
	// SNO has operators that vendor the modules of operands, and the controllers of all modules.
	SNO = Variant("sno")
	// Vendored has an operator that vendors it for every module, one of OLM that vendors only topology, and no
	// controllers.
	Vendored = Variant("vendored")
	// Baseline has stock operators.
	Baseline = Variant("baseline")
)

// Variants returns all variants, the baseline first: others are compared with it.
func Variants() []Variant { return []Variant{Baseline, Vendored, SNO} }

// hosts returns the hosts of a variant by the module that they may vendor, with arguments for stand-ins. Those that are
// commands are among them.
func (v Variant) hosts(operators framework.Operators) map[framework.Module][]string {
	hosts := map[framework.Module][]string{}
	for _, module := range framework.AllModules() {
		switch {
		case operators.Has(module):
			hosts[module] = nil
		case v == Baseline:
			hosts[module] = []string{"--stock"}
		case v == Vendored && module == framework.Ingress: // its placement is not that of the stock operator
			hosts[module] = []string{"--create-default"}
		case v == Vendored, slices.Contains(framework.Modules(), module):
			hosts[module] = nil
		}
	}
	return hosts
}

// Operators returns the host operators of a variant on a cluster for its report.
func (v Variant) Operators(scenarioName string, operators framework.Operators) ([]report.Operator, error) {
	s, err := scenario.Lookup(scenarioName)
	if err != nil {
		return nil, err
	}
	hosts := v.hosts(operators)
	if s.ControlPlaneTopology == configv1.ExternalTopologyMode {
		delete(hosts, framework.EtcdGuard)
	}
	return operators.Report(hosts), nil
}

// Programs returns the programs that the clusters of a variant need, without those of the operators.
func (v Variant) Programs(operators framework.Operators) (needed []programs.Program) {
	hosts := v.hosts(operators)
	for _, module := range framework.AllModules() {
		if _, ok := hosts[module]; ok && !operators.Has(module) {
			needed = append(needed, module.Host())
		}
		if v == SNO {
			needed = append(needed, module.Controller())
		}
	}
	if v == Vendored {
		needed = append(needed, programs.OLMExample)
	}
	return needed
}

// System is a cluster for the conformance suite.
type System struct {
	*framework.ScenarioCluster
	variant Variant
	times   cluster.Times
	// withEtcd means that etcd is in the cluster. later are the hosts that are not started with the cluster.
	withEtcd  bool
	later     map[framework.Module][]string
	operators framework.Operators
	progress  io.Writer

	mu sync.Mutex
	// added are control-plane nodes that a topology has added, and removed those that the next one has removed.
	added, removed []string
}

// Start starts a cluster and returns when it has settled with its day-2 workers. It stops with Stop and with the
// context.
func Start(ctx context.Context, o Options) (*System, error) {
	if o.Times == (cluster.Times{}) {
		o.Times = cluster.SimulatedTimes()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	planned, err := scenario.Lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	// With an external control plane the release has no guard of etcd.
	withEtcd := planned.ControlPlaneTopology != configv1.ExternalTopologyMode
	// A given etcd operator has guards of its own, as those since 4.8 do.
	guarded := withEtcd && o.Variant == SNO && !o.Operators.Has(framework.EtcdGuard)
	// The others start later: they need members of etcd, or what the controllers need.
	first, others := map[framework.Module][]string{}, map[framework.Module][]string{}
	for module, args := range o.Variant.hosts(o.Operators) {
		switch {
		case slices.Contains(framework.Modules(), module):
			first[module] = args
		case module != framework.EtcdGuard || withEtcd:
			others[module] = args
		}
	}
	started, err := framework.Start(ctx, framework.Config{
		Scenario: o.Scenario, Hosts: first, Operators: o.Operators, QuorumGuard: guarded, HostCreatesRouter: o.Variant == Vendored,
		RealMinReadySeconds: o.RealMinReadySeconds, APIServer: o.APIServer, Keep: o.Keep, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	s := &System{
		ScenarioCluster: started, variant: o.Variant, times: o.Times, withEtcd: withEtcd, later: others, operators: o.Operators, progress: o.Progress,
	}
	if err := s.bringUp(ctx); err != nil {
		if !errors.Is(err, framework.ErrOperatorEnded) { // the end of its log is in the error
			// The reason is often in a log.
			err = errors.Join(err, s.logTails())
		}
		err = fmt.Errorf("set up %s, %s: %w", o.Scenario, o.Variant, err)
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *System) bringUp(ctx context.Context) error {
	// Where nodes may request certificates, an unknown client may request those of an unknown node.
	if err := framework.PrepareJoining(ctx, s.Cluster); err != nil {
		return err
	}
	begin := s.startStandIns
	if s.variant != Baseline {
		begin = s.startOperators
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if err := s.WhileOperatorsRun(ctx, s.Settled); err != nil {
		return err
	}
	if s.Scenario.Day2Workers == 0 {
		return nil
	}
	if err := s.Scenario.AddDay2Workers(ctx, s.Cluster); err != nil {
		return err
	}
	return s.WhileOperatorsRun(ctx, s.Settled)
}

// startOperators starts the controllers and the later hosts, and etcd for one of them.
func (s *System) startOperators(ctx context.Context) error {
	var endpoints []string
	if s.withEtcd {
		var names []string
		for _, node := range s.Scenario.Nodes() {
			if !slices.Contains(node.Roles, "worker") || slices.Contains(node.Roles, "master") {
				names = append(names, node.Name)
			}
		}
		etcd, err := etcdmembers.StartNamed(ctx, s.Cluster, names)
		if err != nil {
			return err
		}
		endpoints = []string{"--etcd-endpoints=" + strings.Join(etcd.Endpoints, ",")}
	}
	if err := s.startHosts(ctx, endpoints); err != nil {
		return err
	}
	if s.variant == Vendored {
		_, err := s.RunOLMOperator(ctx)
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, module := range framework.AllModules() {
		group.Go(func() error {
			var args []string
			if module == framework.EtcdGuard {
				args = endpoints
			}
			_, err := s.RunController(groupCtx, module, args...)
			return err
		})
	}
	return group.Wait() //nolint:wrapcheck // describe the fault
}

// startStandIns installs what the stock operators do in addition to the hosts, and starts the later hosts.
func (s *System) startStandIns(ctx context.Context) error {
	if err := s.InstallStockApprover(ctx); err != nil {
		return err
	}
	if err := s.placeByDefault(ctx); err != nil {
		return err
	}
	return s.startHosts(ctx, nil)
}

// startHosts starts the later hosts, that of etcd with further arguments.
func (s *System) startHosts(ctx context.Context, etcd []string) error {
	for module, args := range s.later {
		if module == framework.EtcdGuard {
			args = slices.Concat(args, etcd)
		}
		if err := s.RunHost(ctx, module, args...); err != nil {
			return err
		}
	}
	return nil
}

// placeByDefault writes the default placement that the installer writes for one control-plane node without a load
// balancer, and the ingress operator on such a node (U-ING-3, U-TOP-6). The enhancement, whose rows the scenarios are,
// has no such field.
func (s *System) placeByDefault(ctx context.Context) error {
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
