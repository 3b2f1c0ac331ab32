// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/scenario"
)

// Rollouts measures outages while the router is rolled out on a single node.
var Rollouts = kindtarget.Experiment{
	Name: "rollouts", Description: "a rollout of the router on a single node ends, and without host ports it causes no outage", Scenario: "none-sno-day2-workers",
	Exclusive: true, Run: rollouts,
}

const rolloutsEach = 5

var errOutage = errors.New("requests were without an answer for too long")

type arrangement struct {
	name       string
	hostArgs   []string
	publishing *operatorv1.EndpointPublishingStrategy
	port       int
	bound      time.Duration
}

// A router on its node's network has to end before the next one begins. Then the scheduler and the kubelet have to
// react.
const (
	ownPorts = 30 * time.Second
	// unnoticed is for kube-proxy to receive the new pod, possibly after the old one has ended.
	unnoticed = 4 * traffic.Interval
)

func arrangements() []arrangement {
	stock := []string{"--stock"}
	onNode := hostNetwork()
	private := &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.PrivateStrategyType, Private: &operatorv1.PrivateStrategy{Protocol: operatorv1.TCPProtocol},
	}
	return []arrangement{
		{"host ports, stock strategy (25 %, no surge)", stock, onNode, 80, ownPorts},
		{"host ports, shaped by the module", nil, onNode, 80, ownPorts},
		{"no host ports, stock strategy (25 %, surge 25 %)", stock, private, nodePort, ownPorts},
		{"no host ports, shaped by the module", nil, private, nodePort, unnoticed},
	}
}

// hostNetwork returns how the default router is published without a load balancer.
func hostNetwork() *operatorv1.EndpointPublishingStrategy {
	return &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.HostNetworkStrategyType,
		HostNetwork: &operatorv1.HostNetworkStrategy{
			Protocol: operatorv1.TCPProtocol, HTTPPort: 80, HTTPSPort: 443, StatsPort: 1936,
		},
	}
}

func rollouts(ctx context.Context, e *kindtarget.Env) (err error) {
	s, err := openSite(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.publish(ctx, hostNetwork()), s.close(ctx)) }()
	var rows []bench.Row
	for _, a := range arrangements() {
		row, err := s.measure(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		rows = append(rows, row)
	}
	return record(e, "rollouts", rows)
}

func (s *site) measure(ctx context.Context, a arrangement) (bench.Row, error) {
	if err := s.publish(ctx, a.publishing); err != nil {
		return bench.Row{}, err
	}
	if err := s.run(ctx, firstRouter, a.hostArgs...); err != nil {
		return bench.Row{}, err
	}
	onHost := a.publishing.Type == operatorv1.HostNetworkStrategyType
	if _, err := s.router(ctx, "that is published so", func(p *corev1.Pod) bool { return p.Spec.HostNetwork == onHost && p.Spec.NodeName == s.node }); err != nil {
		return bench.Row{}, err
	}
	if err := s.rolledOut(ctx); err != nil {
		return bench.Row{}, err
	}
	users := s.visit(ctx, "http", a.port)
	defer users.Stop()
	if err := users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
		return bench.Row{}, err
	}
	var outages []time.Duration
	for i := range rolloutsEach {
		begun := time.Now()
		if err := s.roll(ctx, fmt.Sprintf("%s %d", a.name, i)); err != nil {
			return bench.Row{}, err
		}
		if err := users.WaitAnswered(ctx, answeredFor, waitTimeout); err != nil {
			return bench.Row{}, err
		}
		outages = append(outages, traffic.Longest(traffic.Outages(users.Since(begun)), time.Now()))
	}
	row := outageRow("Router rollout on one node: "+a.name, outages, a.bound)
	if !row.Held {
		return row, fmt.Errorf("%w: %s, bound %s", errOutage, row.Measured, row.Bound)
	}
	return row, nil
}

// publish changes how the default router is published. The operator reads the status, which never changes on a real
// cluster: this simulates a new default IngressController.
func (s *site) publish(ctx context.Context, strategy *operatorv1.EndpointPublishingStrategy) error {
	ctx = context.WithoutCancel(ctx)
	ic := &operatorv1.IngressController{}
	key := client.ObjectKey{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController}
	if err := s.Cluster.Client().Get(ctx, key, ic); err != nil {
		return fmt.Errorf("read the default IngressController: %w", err)
	}
	changed := ic.DeepCopy()
	changed.Status.EndpointPublishingStrategy = strategy
	if err := s.Cluster.Client().Status().Patch(ctx, changed, client.MergeFrom(ic)); err != nil {
		return fmt.Errorf("publish the default router: %w", err)
	}
	return nil
}

func (s *site) roll(ctx context.Context, why string) error {
	router := &appsv1.Deployment{}
	router.Namespace, router.Name = scenario.RouterNamespace, "router-"+scenario.DefaultIngressController
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, why)
	if err := s.Cluster.Client().Patch(ctx, router, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("roll the router: %w", err)
	}
	return s.rolledOut(ctx)
}

// rolledOut waits until the router matches its Deployment and no older pod exists.
func (s *site) rolledOut(ctx context.Context) error {
	key := client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-" + scenario.DefaultIngressController}
	last := ""
	err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		live := &appsv1.Deployment{}
		if err := s.Cluster.Client().Get(ctx, key, live); err != nil {
			last = err.Error()
			return false, nil
		}
		last = fmt.Sprintf("%+v", live.Status)
		return rolledOut(live), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the router is rolled out: %w: %s", err, last)
	}
	return nil
}

// rolledOut reports whether every pod is of the newest revision and available, and no other exists.
func rolledOut(d *appsv1.Deployment) bool {
	want := ptr.Deref(d.Spec.Replicas, 1)
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
}
