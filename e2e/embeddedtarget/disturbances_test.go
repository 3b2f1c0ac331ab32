// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// faultName is the name of the objects that disturbances create, and of their clients.
	faultName = "fault"

	router  = "router-default"
	console = "console"

	// writes is the interval of a client that keeps writing: shorter than Times.Quiet, and long enough for a run to begin.
	writes = 2 * time.Second
	// An election that an outage of disturbedTimes outlives.
	leaseDuration, renewDeadline, retryPeriod = 6 * time.Second, 5 * time.Second, 500 * time.Millisecond
)

var (
	errElection = errors.New("the election of the control")
	errUpgrade  = errors.New("the upgrade of the control")
	errWatch    = errors.New("the watch of certificate requests was closed")
)

// disturbance causes a fault. It may replace the acts of a target. The result reverts the fault; it is not nil.
type disturbance func(ctx context.Context, s *system, target *cluster.Target) (undo undo, err error)

type undo func(context.Context) error

func nothing(context.Context) error { return nil }

// and returns an undo that first calls u.
func (u undo) and(next undo) undo {
	return func(ctx context.Context) error { return errors.Join(u(ctx), next(ctx)) }
}

// background runs a client until it is undone. The client ends with its context.
func background(ctx context.Context, run func(context.Context) error) undo {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func(context.Context) error {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the disturbance ended: %w", err)
		}
		return nil
	}
}

// create creates an object.
func create(ctx context.Context, s *system, object client.Object) (undo, error) {
	if err := s.Cluster.Client().Create(ctx, object, client.FieldOwner(faultName)); err != nil {
		return nothing, fmt.Errorf("create %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return func(ctx context.Context) error { return client.IgnoreNotFound(s.Cluster.Client().Delete(ctx, object)) }, nil
}

// keepWriting annotates an object at an interval.
func keepWriting(object client.Object) disturbance {
	return func(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
		annotate := func(ctx context.Context, value string) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/%s":%s}}}`, faultName, value))
			target, _ := object.DeepCopyObject().(client.Object)
			return s.Cluster.Client().Patch(ctx, target, patch, client.FieldOwner(faultName))
		}
		stop := background(ctx, func(ctx context.Context) error {
			return wait.PollUntilContextCancel(ctx, writes, true, func(ctx context.Context) (bool, error) {
				return false, annotate(ctx, fmt.Sprintf("%q", time.Now().Format(time.RFC3339Nano)))
			})
		})
		return stop.and(func(ctx context.Context) error { return annotate(ctx, "null") }), nil
	}
}

// approveAll approves every certificate request for the identity of a node, as it comes.
func approveAll(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
	requests := s.Cluster.Clientset().CertificatesV1().CertificateSigningRequests()
	watching, err := requests.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientKubeletSignerName})
	if err != nil {
		return nothing, fmt.Errorf("watch certificate requests: %w", err)
	}
	return background(ctx, func(ctx context.Context) error {
		defer watching.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case event, open := <-watching.ResultChan():
				if !open {
					return errWatch
				}
				request, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
				if !ok || len(request.Status.Conditions) > 0 {
					continue
				}
				request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
					{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Fault", Message: "Every request of a node is approved."},
				}
				if _, err := requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
	}), nil
}

// deadlock makes rollouts of the console wait for themselves on one node, where its operator would not.
func deadlock(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
	restart, err := stop(ctx, s, framework.Console)
	if err != nil {
		return restart, err
	}
	deployments := s.Cluster.Clientset().AppsV1().Deployments(scenario.ConsoleNamespace)
	before, err := deployments.Get(ctx, console, metav1.GetOptions{})
	if err != nil {
		return restart, fmt.Errorf("read the console: %w", err)
	}
	spec := before.Spec.DeepCopy()
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
	}}
	spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: before.Spec.Selector, TopologyKey: corev1.LabelHostname},
	}}}
	write := func(ctx context.Context, spec *appsv1.DeploymentSpec) error {
		body, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec", "value": spec}})
		if err != nil {
			return err
		}
		_, err = deployments.Patch(ctx, console, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: faultName})
		return err
	}
	undone := undo(func(ctx context.Context) error { return write(ctx, &before.Spec) }).and(restart)
	return undone, write(ctx, spec)
}

// stop stops a module's operator and its controller.
func stop(ctx context.Context, s *system, module framework.Module) (undo, error) {
	names := []string{module.Host().Name, module.Controller().Name}
	restart := func(ctx context.Context) error {
		for _, name := range names {
			if program := s.Cluster.Program(name); program != nil && program.PID() == 0 {
				if err := program.Start(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, name := range names {
		if program := s.Cluster.Program(name); program != nil {
			if err := program.Terminate(ctx); err != nil {
				return restart, err
			}
		}
	}
	return restart, nil
}

func stopped(module framework.Module) disturbance {
	return func(ctx context.Context, s *system, _ *cluster.Target) (undo, error) { return stop(ctx, s, module) }
}

// forbidEvictions creates a budget over the console that allows no eviction, and waits for its status.
func forbidEvictions(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
	live, err := s.Cluster.Clientset().AppsV1().Deployments(scenario.ConsoleNamespace).Get(ctx, console, metav1.GetOptions{})
	if err != nil {
		return nothing, fmt.Errorf("read the console: %w", err)
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: faultName},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: live.Spec.Selector, MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	}
	remove, err := create(ctx, s, budget)
	if err != nil {
		return nothing, err
	}
	return remove, wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return budget.Status.ObservedGeneration >= budget.Generation, err
	})
}

// forbidPods creates a quota that forbids new pods of the router, and waits until the API server enforces it.
func forbidPods(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
	kube := s.Cluster.Clientset()
	remove, err := create(ctx, s, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: faultName},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	})
	if err != nil {
		return nothing, err
	}
	err = wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: faultName},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: faultName, Image: faultName}}},
		}
		_, err := kube.CoreV1().Pods(scenario.RouterNamespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
	// A write of the ReplicaSets ends their back-off.
	retry := func(ctx context.Context) error {
		sets, err := kube.AppsV1().ReplicaSets(scenario.RouterNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range sets.Items {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/%s":"undone"}}}`, faultName)
			if _, err := kube.AppsV1().ReplicaSets(scenario.RouterNamespace).Patch(ctx, sets.Items[i].Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	return remove.and(retry), err
}

// cordon cordons a node, as a person does with kubectl.
func cordon(ctx context.Context, s *system, node string, cordoned bool) error {
	body := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	if _, err := s.Cluster.Clientset().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-cordon"}); err != nil {
		return fmt.Errorf("cordon node %s (%t): %w", node, cordoned, err)
	}
	return nil
}

// cordonedByRestart makes each restart of the control-plane node leave it unschedulable.
func cordonedByRestart(_ context.Context, s *system, target *cluster.Target) (undo, error) {
	restart := target.RestartNode
	target.RestartNode = func(ctx context.Context, node string) error {
		if node != controlPlaneNode {
			return restart(ctx, node)
		}
		return errors.Join(cordon(ctx, s, node, true), restart(ctx, node))
	}
	return func(ctx context.Context) error { return cordon(ctx, s, controlPlaneNode, false) }, nil
}

// partialUpgrade makes an upgrade begin and end before its last operator is replaced. Another one completes.
func partialUpgrade(_ context.Context, s *system, target *cluster.Target) (undo, error) {
	target.Upgrade = func(ctx context.Context) error {
		if err := s.Upgrade(ctx, func(context.Context) error { return errUpgrade }); !errors.Is(err, errUpgrade) {
			return fmt.Errorf("begin an upgrade: %w", err)
		}
		return nil
	}
	return func(ctx context.Context) error { return s.Upgrade(ctx, nothing) }, nil
}

func cordoned(node string) disturbance {
	return func(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
		return func(ctx context.Context) error { return cordon(ctx, s, node, false) }, cordon(ctx, s, node, true)
	}
}

// leaveBudget creates a budget that disturbs nothing.
func leaveBudget(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
	return create(ctx, s, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.ConsoleNamespace, Name: faultName},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": faultName}}, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
	})
}

// answerRequests replaces the controller of drains by one that acknowledges all requests of nodes, and drains them or
// not.
func answerRequests(drain bool) disturbance {
	return func(ctx context.Context, s *system, _ *cluster.Target) (undo, error) {
		restart, err := stop(ctx, s, framework.MachineConfig)
		if err != nil {
			return restart, err
		}
		nodes := s.Cluster.Clientset().CoreV1().Nodes()
		answer := func(ctx context.Context, node *corev1.Node) error {
			desired := node.Annotations[machineconfig.DesiredDrainAnnotation]
			if desired == "" || desired == node.Annotations[machineconfig.LastAppliedDrainAnnotation] {
				return nil
			}
			if drain {
				do := operand.Drain
				if strings.HasPrefix(desired, string(machineconfig.VerbUncordon)) {
					do = operand.Uncordon
				}
				if err := do(ctx, s.Cluster, node.Name); err != nil {
					return err
				}
			}
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, machineconfig.LastAppliedDrainAnnotation, desired)
			_, err := nodes.Patch(ctx, node.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: faultName})
			return err
		}
		end := background(ctx, func(ctx context.Context) error {
			return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
				list, err := nodes.List(ctx, metav1.ListOptions{})
				if err != nil {
					return false, err
				}
				for i := range list.Items {
					if err := answer(ctx, &list.Items[i]); err != nil {
						return false, err
					}
				}
				return false, nil
			})
		})
		return end.and(restart), nil
	}
}

// longOutage starts an election with two candidates, and makes the outage of the API server longer than its leader may
// be without the Lease. The outage ends when the other candidate leads.
func longOutage(ctx context.Context, s *system, target *cluster.Target) (undo, error) {
	kube := s.Cluster.Clientset()
	lease := metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: faultName}
	leads := make(chan string, 2)
	candidate := func(identity string) func(context.Context) error {
		return func(ctx context.Context) error {
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &resourcelock.LeaseLock{LeaseMeta: lease, Client: kube.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
				LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- identity }, OnStoppedLeading: func() {}},
			})
			if err != nil {
				return err
			}
			elector.Run(logr.NewContext(ctx, logr.Discard()))
			return nil
		}
	}
	leader := func(ctx context.Context, identity string) error {
		ctx, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		select {
		case got := <-leads:
			if got != identity {
				return fmt.Errorf("%w: leader %s, want %s", errElection, got, identity)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %s does not lead: %w", errElection, identity, ctx.Err())
		}
	}
	first, second := faultName+"-0", faultName+"-1"
	end := background(ctx, candidate(first))
	err := leader(ctx, first)
	end = end.and(background(ctx, candidate(second))).and(func(ctx context.Context) error {
		return client.IgnoreNotFound(kube.CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{}))
	})
	outage := target.Outage
	target.Outage = func(ctx context.Context, length time.Duration) error {
		if err := outage(ctx, length+leaseDuration); err != nil {
			return err
		}
		return leader(ctx, second)
	}
	return end, err
}

// withoutControllerManager ends the controller manager during the outage of the API server.
func withoutControllerManager(_ context.Context, s *system, target *cluster.Target) (undo, error) {
	manager, outage := s.Cluster.Component(embedded.ControllerManager), target.Outage
	target.Outage = func(ctx context.Context, length time.Duration) error {
		return errors.Join(manager.Kill(), outage(ctx, length))
	}
	return manager.Start, nil
}

func routerDeployment() client.Object {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: router}}
}

func ingressController() client.Object {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController}}
}
