// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

// topologyChanges measures for each topology change how long it takes until a watch of another process receives the
// patched object.
type topologyChanges struct {
	patched
	module framework.Module
	config framework.Config
	change func(ctx context.Context, s *framework.ScenarioCluster, single bool) error
	// settled is the reason of the controller's condition when it has settled.
	settled map[bool]string
	// arguments, if not nil, returns further arguments of the controller.
	arguments func(context.Context, *framework.ScenarioCluster) ([]string, error)
}

type patched struct {
	// what names it in the table.
	what    string
	list    client.ObjectList
	options client.ListOptions
	// single reports whether it is as on one node; nil if it must not exist there.
	single func(client.Object) bool
}

func (p patched) watch(ctx context.Context, s *framework.ScenarioCluster) (watch.Interface, error) {
	kube, err := client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: s.Cluster.Client().Scheme()})
	if err != nil {
		return nil, fmt.Errorf("make a watching client: %w", err)
	}
	watching, err := kube.Watch(ctx, p.list, &p.options)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", p.what, err)
	}
	return watching, nil
}

// follow waits until a watch receives it as on one node, or as on three.
func (p patched) follow(watching watch.Interface, single bool) error {
	late := time.After(waitTimeout)
	for {
		select {
		case event, open := <-watching.ResultChan():
			object, ok := event.Object.(client.Object)
			if !open || !ok {
				return fmt.Errorf("%w: the watch of the %s ended", errFigures, p.what)
			}
			now := event.Type == watch.Deleted
			if p.single != nil {
				now = !now && p.single(object)
			}
			if now == single {
				return nil
			}
		case <-late:
			return fmt.Errorf("%w: the %s did not follow within %s", errFigures, p.what, waitTimeout)
		}
	}
}

var (
	patchedIngressController = patched{
		what: "IngressController", list: &operatorv1.IngressControllerList{},
		options: named(scenario.OperatorNamespace, scenario.DefaultIngressController),
		single: func(object client.Object) bool {
			ic, ok := object.(*operatorv1.IngressController)
			return ok && ic.Spec.NodePlacement != nil
		},
	}
	patchedDownloads = patched{
		what: "downloads Deployment, taken over and released", list: &appsv1.DeploymentList{}, options: named(scenario.ConsoleNamespace, "downloads"),
		single: func(object client.Object) bool {
			d, ok := object.(*appsv1.Deployment)
			return ok && d.Spec.Replicas != nil && *d.Spec.Replicas == 1
		},
	}
	patchedAuthentication = patched{
		what: "Authentication", list: &operatorv1.AuthenticationList{}, options: named("", scenario.ClusterName),
		single: func(object client.Object) bool {
			a, ok := object.(*operatorv1.Authentication)
			return ok && strings.Contains(string(a.Spec.UnsupportedConfigOverrides.Raw), "NonHANonProduction")
		},
	}
	patchedGuard = patched{
		what: "quorum guard, removed and restored", list: &policyv1.PodDisruptionBudgetList{}, options: named(scenario.EtcdNamespace, "etcd-quorum-guard"),
	}
	patchedStockApprover = patched{
		what: "stock approver's configuration", list: &corev1.ConfigMapList{}, options: named(framework.StockApproverNamespace, "machine-approver-config"),
		single: func(object client.Object) bool {
			return object.GetAnnotations()["sno.solonode.github.io/approver-edit"] != ""
		},
	}
)

func both(ctx context.Context, s *framework.ScenarioCluster, single bool) error {
	mode := configv1.HighlyAvailableTopologyMode
	if single {
		mode = configv1.SingleReplicaTopologyMode
	}
	return s.SetTopology(ctx, mode, mode)
}

// run starts with one node. The controller still runs afterwards.
func (t topologyChanges) run(ctx context.Context, o Options) (*framework.ScenarioCluster, []time.Duration, error) {
	t.config.Progress = o.Progress
	s, err := framework.Start(ctx, t.config)
	if err != nil {
		return nil, nil, err
	}
	times, err := t.on(ctx, o, s)
	if err != nil {
		s.Stop()
		return nil, nil, err
	}
	slices.Sort(times)
	return s, times, nil
}

func (t topologyChanges) on(ctx context.Context, o Options, s *framework.ScenarioCluster) ([]time.Duration, error) {
	single := true
	if err := t.change(ctx, s, single); err != nil {
		return nil, err
	}
	var arguments []string
	if t.arguments != nil {
		var err error
		if arguments, err = t.arguments(ctx, s); err != nil {
			return nil, err
		}
	}
	if _, err := s.RunController(ctx, t.module, arguments...); err != nil {
		return nil, err
	}
	if _, err := s.WaitReason(ctx, t.module, waitTimeout, t.settled[single]); err != nil {
		return nil, err
	}
	watching, err := t.watch(ctx, s)
	if err != nil {
		return nil, err
	}
	defer watching.Stop()

	var times []time.Duration
	for i := range o.TopologyChanges {
		single = !single
		started := time.Now()
		if err := t.change(ctx, s, single); err != nil {
			return nil, fmt.Errorf("topology change %d: %w", i+1, err)
		}
		if err := t.follow(watching, single); err != nil {
			return nil, fmt.Errorf("topology change %d: %w", i+1, err)
		}
		times = append(times, time.Since(started))
		// The next change begins when the controller has settled.
		if _, err := s.WaitReason(ctx, t.module, waitTimeout, t.settled[single]); err != nil {
			return nil, err
		}
	}
	return times, nil
}

func (t topologyChanges) row(o Options, times []time.Duration, bound time.Duration, compared string) Row {
	return changesRow(fmt.Sprintf("Topology change to patched %s, %d changes", t.what, o.TopologyChanges), times, bound, compared)
}

func changesRow(what string, times []time.Duration, bound time.Duration, compared string) Row {
	p99 := percentile(times, 99)
	row := Row{
		What:     what,
		Measured: fmt.Sprintf("p50 %s, p99 %s, max %s", millis(percentile(times, 50)), millis(p99), millis(times[len(times)-1])),
		Bound:    "-", Compared: compared, Held: true,
	}
	if bound > 0 {
		row.Bound, row.Held = fmt.Sprintf("p99 < %s", millis(bound)), p99 < bound
	}
	return row
}

// ingressChanges also counts the controller's writes on the idle cluster.
func ingressChanges(ctx context.Context, o Options) ([]Row, error) {
	t := topologyChanges{
		module: framework.Ingress, patched: patchedIngressController,
		config: framework.Config{Scenario: "none-sno-day2-workers", Hosts: map[framework.Module][]string{framework.Ingress: nil}},
		change: func(ctx context.Context, s *framework.ScenarioCluster, single bool) error {
			mode := configv1.HighlyAvailableTopologyMode
			if single {
				mode = configv1.SingleReplicaTopologyMode
			}
			return s.SetTopology(ctx, configv1.SingleReplicaTopologyMode, mode)
		},
		settled: map[bool]string{true: "AsExpected", false: "NotNeeded"},
	}
	s, times, err := t.run(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	rows := []Row{t.row(o, times, ingressBound, "stock: console 20-100 ms, router Deployment 240-360 ms, default IngressController never")}
	rest, err := atRest(ctx, o, s, framework.Ingress.Controller().Name, framework.Ingress.User())
	return append(rows, rest...), err
}

// consoleChanges includes the time until the stand-in of the cluster-version-operator releases downloads.
func consoleChanges(ctx context.Context, o Options) ([]Row, error) {
	t := topologyChanges{
		module: framework.Console, patched: patchedDownloads,
		config: framework.Config{
			Scenario: "ha", VersionOperator: true, Hosts: map[framework.Module][]string{framework.Console: {"--downloads=false"}},
		},
		change: both, settled: map[bool]string{true: "AsExpected", false: "NotNeeded"},
	}
	s, times, err := t.run(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	return []Row{t.row(o, times, 0, "stock console operator 20-100 ms, without a take-over")}, nil
}

// authChanges uses a release that needs the override on one node.
func authChanges(ctx context.Context, o Options) ([]Row, error) {
	t := topologyChanges{
		module: framework.Auth, patched: patchedAuthentication,
		config: framework.Config{Scenario: "ha", Release: scenario.OldRelease, Hosts: map[framework.Module][]string{framework.Auth: nil}},
		change: both, settled: map[bool]string{true: "AsExpected", false: "AsExpected"},
	}
	s, times, err := t.run(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	return []Row{t.row(o, times, 0, "stock: never, a person sets the override")}, nil
}

// guardChanges removes and restores the guard of the release. Etcd keeps its one member.
func guardChanges(ctx context.Context, o Options) ([]Row, error) {
	t := topologyChanges{
		module: framework.EtcdGuard, patched: patchedGuard,
		config: framework.Config{Scenario: "ha", Release: scenario.OldRelease, QuorumGuard: true},
		change: both, settled: map[bool]string{true: "AsExpected", false: "NotNeeded"},
		arguments: func(ctx context.Context, s *framework.ScenarioCluster) ([]string, error) {
			etcd, err := etcdmembers.Start(ctx, s.Cluster, 1)
			if err != nil {
				return nil, err
			}
			return []string{"--etcd-endpoints=" + etcd.Endpoints[0]}, nil
		},
	}
	s, times, err := t.run(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	o.IdleTime /= 5 // shorter than for the ingress controller: all modules share the code that skips writes
	rest, err := atRest(ctx, o, s, framework.EtcdGuard.Controller().Name, framework.EtcdGuard.User())
	return append([]Row{t.row(o, times, 0, "stock: left on one node permanently, counted once per process")}, rest...), err
}

const ingressBound = time.Second

func named(namespace, name string) client.ListOptions {
	return client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}
}

// atRest counts the writes of a process on an idle cluster.
func atRest(ctx context.Context, o Options, s *framework.ScenarioCluster, process, user string) ([]Row, error) {
	logf(o.Progress, "Counting writes for %s", o.IdleTime)
	offset, err := s.Cluster.AuditOffset(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(o.IdleTime):
	}
	events, _, err := s.Cluster.AuditEvents(ctx, offset, embedded.AuditFilter{User: user, WritesOnly: true})
	if err != nil {
		return nil, err
	}
	leases := 0
	var others []string
	for _, event := range events {
		if event.ObjectRef != nil && event.ObjectRef.Resource == "leases" {
			leases++
			continue
		}
		others = append(others, event.Verb+" "+event.RequestURI)
	}
	return []Row{{
		What:     fmt.Sprintf("Write requests of %s at rest over %s, from the audit log", process, o.IdleTime),
		Measured: fmt.Sprintf("%d (and %d renewals of its Lease) %s", len(others), leases, strings.Join(others, " ")),
		Bound:    "0", Compared: "stock console operator 6.5 a minute, ingress operator 0", Held: len(others) == 0,
	}}, nil
}
