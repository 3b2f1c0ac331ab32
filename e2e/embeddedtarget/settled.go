// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology/workload"
)

const (
	poll    = 50 * time.Millisecond
	logTail = 1500
	// A ReplicaSet that was not scaled up is far from the end of the log.
	managerLogTail = 20_000

	asExpected, notNeeded = "AsExpected", "NotNeeded"
)

var errUnsettled = errors.New("does not settle")

// Settled waits until every Deployment exists and is settled, and until the controllers have the expected reasons. For
// hosts that are commands see givenSettled.
func (s *System) Settled(ctx context.Context) error {
	var wrong string
	err := wait.PollUntilContextTimeout(ctx, poll, s.times.Settle, true, func(ctx context.Context) (bool, error) {
		now, err := s.moving(ctx, s.deployments(false))
		if err == nil {
			wrong = now
		}
		return now == "", err
	})
	if err != nil {
		return fmt.Errorf("%w within %s: %s: %w", errUnsettled, s.times.Settle, wrong, err)
	}
	for module := range s.later {
		if s.variant == Baseline { // its hosts report no conditions
			break
		}
		if err := s.WaitHost(ctx, module, s.times.Settle); err != nil {
			return fmt.Errorf("%s: %w%s", module, err, s.Unfinished(context.WithoutCancel(ctx)))
		}
	}
	for module, wanted := range ExpectedReasons(s.Scenario) {
		if s.variant != SNO || s.operators.Has(module) {
			continue
		}
		if _, err := s.WaitReason(ctx, module, s.times.Settle, wanted...); err != nil {
			return fmt.Errorf("%s: %w%s", module, err, s.Unfinished(context.WithoutCancel(ctx)))
		}
	}
	return s.givenSettled(ctx)
}

// givenSettled waits until the operands of hosts that are commands are settled and neither they nor the conditions of
// their controllers have changed for a while. It does not require any condition of such a host, or of a controller next
// to it. If the limit is over, that is printed and is no error: the checks find what is wrong.
func (s *System) givenSettled(ctx context.Context) error {
	if len(s.operators.Modules()) == 0 {
		return nil
	}
	var last, wrong string
	since := time.Now()
	err := wait.PollUntilContextTimeout(ctx, poll, s.times.Settle, true, func(ctx context.Context) (bool, error) {
		moving, err := s.moving(ctx, s.deployments(true))
		if err != nil {
			return false, err
		}
		now, err := s.givenState(ctx)
		if err != nil {
			return false, err
		}
		idle, err := s.idleOperators(ctx)
		if err != nil {
			return false, err
		}
		if wrong = moving; len(idle) > 0 {
			wrong = "nothing was written by that of " + strings.Join(idle, ", ")
		}
		if wrong != "" || now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= s.times.Quiet, nil
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.progress, "The operands of the given operators have not settled within %s: %s\n", s.times.Settle, cmp.Or(wrong, "they keep changing"))
	return nil
}

func (s *System) idleOperators(ctx context.Context) ([]string, error) {
	idle, err := s.IdleOperators(ctx)
	var names []string
	for _, module := range idle {
		names = append(names, string(module))
	}
	return names, err
}

// givenState describes the operands of hosts that are commands, and the conditions of their controllers.
func (s *System) givenState(ctx context.Context) (string, error) {
	var text strings.Builder
	for _, key := range s.deployments(true) {
		live := &appsv1.Deployment{}
		if err := s.Cluster.Client().Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read Deployment %s: %w", key, err)
		}
		fmt.Fprintf(&text, "%s %d\n", key, live.Generation)
	}
	expected := ExpectedReasons(s.Scenario) // there are objects for the conditions of these modules
	for _, module := range s.operators.Modules() {
		if _, ok := expected[module]; !ok || s.variant != SNO {
			continue
		}
		condition, err := s.Condition(ctx, module)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s\n", condition)
	}
	return text.String(), nil
}

// ExpectedReasons returns the final reasons of each controller, written by hand.
func ExpectedReasons(s scenario.Scenario) map[framework.Module][]string {
	mode := s.ControlPlaneTopology
	single, external := mode == configv1.SingleReplicaTopologyMode, mode == configv1.ExternalTopologyMode
	reasons := map[framework.Module][]string{
		framework.Ingress: {notNeeded}, framework.Console: {notNeeded}, framework.Auth: {asExpected}, framework.EtcdGuard: {asExpected}, framework.MachineConfig: {asExpected},
		framework.Approver: {notNeeded},
	}
	if s.Pool == scenario.PoolMaster {
		reasons[framework.Ingress] = []string{asExpected}
	}
	if single {
		reasons[framework.Approver] = []string{asExpected}
	}
	// The release's guard is right for three members.
	if mode == configv1.HighlyAvailableTopologyMode {
		reasons[framework.EtcdGuard] = []string{notNeeded}
	}
	if external {
		// There is no object for its condition.
		delete(reasons, framework.Ingress)
		delete(reasons, framework.Approver)
		reasons[framework.EtcdGuard] = []string{notNeeded}
		reasons[framework.Auth] = []string{notNeeded, "ExternalControlPlane"}
	}
	return reasons
}

// deployments returns the Deployments of hosts that are commands, or all others.
func (s *System) deployments(given bool) []client.ObjectKey {
	var keys []client.ObjectKey
	add := func(module framework.Module, namespace, name string) {
		if s.operators.Has(module) == given {
			keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
		}
	}
	if s.Scenario.ControlPlaneTopology != configv1.ExternalTopologyMode {
		add(framework.Approver, framework.StockApproverNamespace, framework.StockApprover)
	}
	for _, o := range s.Scenario.Operands.List() {
		add(moduleOf(o), o.Namespace, o.Name)
	}
	if s.Scenario.StockReplicas > 0 {
		add(framework.Ingress, scenario.RouterNamespace, "router-default")
	}
	if s.variant == Vendored {
		add("", framework.OLMNamespace, framework.OLMOperand)
	}
	return keys
}

func moduleOf(o scenario.Operand) framework.Module {
	if o.Namespace == scenario.ConsoleNamespace {
		return framework.Console
	}
	return framework.Auth
}

// moving returns what is not settled, or nothing. A pod that is unschedulable is settled.
func (s *System) moving(ctx context.Context, keys []client.ObjectKey) (string, error) {
	if err := s.sweepLate(ctx); err != nil {
		return "", err
	}
	kube := s.Cluster.Client()
	for _, key := range keys {
		live := &appsv1.Deployment{}
		err := kube.Get(ctx, key, live)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("there is no Deployment %s", key), nil
		}
		if err != nil {
			return "", fmt.Errorf("read Deployment %s: %w", key, err)
		}
		var pods corev1.PodList
		if err := kube.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels(live.Spec.Selector.MatchLabels)); err != nil {
			return "", fmt.Errorf("list the pods of %s: %w", key, err)
		}
		if live.Status.ObservedGeneration < live.Generation || len(pods.Items) < int(*live.Spec.Replicas) {
			return fmt.Sprintf("Deployment %s has %d of %d pods", key, len(pods.Items), *live.Spec.Replicas), nil
		}
		var ready int32
		for i := range pods.Items {
			if !isSettled(&pods.Items[i]) {
				return fmt.Sprintf("pod %s/%s is %s", key.Namespace, pods.Items[i].Name, pods.Items[i].Status.Phase), nil
			}
			if pods.Items[i].Spec.NodeName != "" {
				ready++
			}
		}
		// A router counts as available some time after it is ready.
		if live.Status.AvailableReplicas < ready {
			return fmt.Sprintf("Deployment %s: %d of %d ready pods are available", key, live.Status.AvailableReplicas, ready), nil
		}
	}
	return "", nil
}

// Unfinished describes Deployments that are not rolled out, and has the end of the controller manager's log. A rollout
// that waits for a node is settled, but unfinished.
func (s *System) Unfinished(ctx context.Context) string {
	var text strings.Builder
	for _, key := range slices.Concat(s.deployments(false), s.deployments(true)) {
		live := &appsv1.Deployment{}
		if err := s.Cluster.Client().Get(ctx, key, live); err == nil && !workload.RolledOut(live) {
			fmt.Fprintf(&text, "\nDeployment %s: generation %d, spec %+v, status %+v", key, live.Generation, live.Spec, live.Status)
		}
	}
	if text.Len() > 0 {
		fmt.Fprintf(&text, "\nthe log of the controller manager ends with:\n%s", s.Cluster.Component(embedded.ControllerManager).LogTail(managerLogTail))
	}
	return text.String()
}

// isSettled reports whether a pod is ready or unschedulable.
func isSettled(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable:
			return true
		}
	}
	return false
}

func (s *System) logTails() error {
	var errs []error
	for _, module := range framework.AllModules() {
		for _, name := range []string{module.Host().Name, module.Controller().Name} {
			program := s.Cluster.Program(name)
			if program == nil {
				continue
			}
			if tail := strings.TrimSpace(program.LogTail(logTail)); tail != "" {
				errs = append(errs, fmt.Errorf("the log of %s ends with:\n%s", name, tail)) //nolint:err113 // printed only
			}
		}
	}
	return errors.Join(errs...)
}

func (s *System) podsOf(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := s.Cluster.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return list.Items, nil
}
