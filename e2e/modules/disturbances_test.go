// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
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

	poll = 50 * time.Millisecond
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

// disturbance causes a fault until the end of the spec. It may replace the acts of a target.
type disturbance func(s *system, target *cluster.Target)

// background runs a client until the end of the spec. The client ends with its context.
func background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Or(Succeed(), MatchError(context.Canceled)), "the disturbance ended")
	})
}

// create creates an object.
func (s *system) create(object client.Object) {
	GinkgoHelper()
	Expect(s.kube.Create(s.ctx, object, client.FieldOwner(faultName))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(s.kube.Delete(ctx, object))).To(Succeed()) })
}

// keepWriting annotates an object at an interval.
func keepWriting(object client.Object) disturbance {
	return func(s *system, _ *cluster.Target) {
		annotate := func(ctx context.Context, value string) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/%s":%s}}}`, faultName, value))
			target, _ := object.DeepCopyObject().(client.Object)
			return s.kube.Patch(ctx, target, patch, client.FieldOwner(faultName))
		}
		DeferCleanup(func(ctx SpecContext) { Expect(annotate(ctx, "null")).To(Succeed()) })
		background(func(ctx context.Context) error {
			return wait.PollUntilContextCancel(ctx, writes, true, func(ctx context.Context) (bool, error) {
				return false, annotate(ctx, fmt.Sprintf("%q", time.Now().Format(time.RFC3339Nano)))
			})
		})
	}
}

// approveAll approves every certificate request for the identity of a node, as it comes.
func approveAll(s *system, _ *cluster.Target) {
	requests := s.Cluster.Clientset().CertificatesV1().CertificateSigningRequests()
	watching := suite.Must(requests.Watch(context.Background(), metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientKubeletSignerName}))
	background(func(ctx context.Context) error {
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
	})
}

// deadlock makes rollouts of the console wait for themselves on one node, where its operator would not.
func deadlock(s *system, _ *cluster.Target) {
	s.stopOperator(framework.Console)
	before := s.consoleDeployment()
	write := func(ctx context.Context, spec *appsv1.DeploymentSpec) error {
		body, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec", "value": spec}})
		if err != nil {
			return err
		}
		return s.kube.Patch(ctx, before.DeepCopy(), client.RawPatch(types.JSONPatchType, body), client.FieldOwner(faultName))
	}
	DeferCleanup(func(ctx SpecContext) { Expect(write(ctx, &before.Spec)).To(Succeed()) })
	spec := before.Spec.DeepCopy()
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
	}}
	spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: before.Spec.Selector, TopologyKey: corev1.LabelHostname},
	}}}
	Expect(write(s.ctx, spec)).To(Succeed())
}

func (s *system) consoleDeployment() *appsv1.Deployment {
	GinkgoHelper()
	live := &appsv1.Deployment{}
	Expect(s.kube.Get(s.ctx, client.ObjectKey{Namespace: scenario.ConsoleNamespace, Name: console}, live)).To(Succeed())
	return live
}

// stopOperator stops a module's operator and its controller.
func (s *system) stopOperator(module framework.Module) {
	GinkgoHelper()
	for _, name := range []string{module.Host().Name, module.Controller().Name} {
		program := s.Cluster.Program(name)
		if program == nil {
			continue
		}
		DeferCleanup(func(ctx SpecContext) {
			if program.PID() == 0 { // the check may have restarted it
				Expect(program.Start(ctx)).To(Succeed())
			}
		})
		Expect(program.Terminate(s.ctx)).To(Succeed())
	}
}

func stopped(module framework.Module) disturbance {
	return func(s *system, _ *cluster.Target) { s.stopOperator(module) }
}

// forbidEvictions creates a budget over the console that allows no eviction, and waits for its status.
func forbidEvictions(s *system, _ *cluster.Target) {
	live := s.consoleDeployment()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: faultName},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: live.Spec.Selector, MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	}
	s.create(budget)
	Eventually(s.ctx, func(g Gomega) {
		g.Expect(s.kube.Get(s.ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
		g.Expect(budget.Status.ObservedGeneration).To(BeNumerically(">=", budget.Generation))
	}).Should(Succeed())
}

// forbidPods creates a quota that forbids new pods of the router, and waits until the API server enforces it.
func forbidPods(s *system, _ *cluster.Target) {
	// A write of the ReplicaSets ends their back-off.
	DeferCleanup(func(ctx SpecContext) {
		sets := &appsv1.ReplicaSetList{}
		Expect(s.kube.List(ctx, sets, client.InNamespace(scenario.RouterNamespace))).To(Succeed())
		for i := range sets.Items {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/%s":"undone"}}}`, faultName)
			Expect(s.kube.Patch(ctx, &sets.Items[i], client.RawPatch(types.MergePatchType, body))).To(Succeed())
		}
	})
	meta := metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: faultName}
	s.create(&corev1.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
	Eventually(s.ctx, func() bool {
		pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: faultName, Image: faultName}}}}
		return apierrors.IsForbidden(s.kube.Create(s.ctx, pod, client.DryRunAll))
	}).Should(BeTrue(), "the quota is enforced")
}

// cordon cordons a node, as a person does with kubectl.
func (s *system) cordon(ctx context.Context, node string, cordoned bool) error {
	body := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	return s.kube.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner("kubectl-cordon"))
}

func (s *system) uncordonLater(node string) {
	DeferCleanup(func(ctx SpecContext) { Expect(s.cordon(ctx, node, false)).To(Succeed()) })
}

// cordonedByRestart makes each restart of the control-plane node leave it unschedulable.
func cordonedByRestart(s *system, target *cluster.Target) {
	restart := target.RestartNode
	target.RestartNode = func(ctx context.Context, node string) error {
		if node != controlPlaneNode {
			return restart(ctx, node)
		}
		return errors.Join(s.cordon(ctx, node, true), restart(ctx, node))
	}
	s.uncordonLater(controlPlaneNode)
}

// partialUpgrade makes an upgrade begin and end before its last operator is replaced. Another one completes.
func partialUpgrade(s *system, target *cluster.Target) {
	target.Upgrade = func(ctx context.Context) error {
		if err := s.Upgrade(ctx, func(context.Context) error { return errUpgrade }); !errors.Is(err, errUpgrade) {
			return fmt.Errorf("begin an upgrade: %w", err)
		}
		return nil
	}
	DeferCleanup(func(ctx SpecContext) {
		Expect(s.Upgrade(ctx, func(context.Context) error { return nil })).To(Succeed())
	})
}

func cordoned(node string) disturbance {
	return func(s *system, _ *cluster.Target) {
		s.uncordonLater(node)
		Expect(s.cordon(s.ctx, node, true)).To(Succeed())
	}
}

// leaveBudget creates a budget that disturbs nothing.
func leaveBudget(s *system, _ *cluster.Target) {
	s.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: scenario.ConsoleNamespace, Name: faultName},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": faultName}}, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
	})
}

// answerRequests replaces the controller of drains by one that acknowledges all requests of nodes, and drains them or
// not.
func answerRequests(drain bool) disturbance {
	return func(s *system, _ *cluster.Target) {
		s.stopOperator(framework.MachineConfig)
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
			return s.kube.Patch(ctx, node, client.RawPatch(types.MergePatchType, body), client.FieldOwner(faultName))
		}
		background(func(ctx context.Context) error {
			return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
				list := &corev1.NodeList{}
				if err := s.kube.List(ctx, list); err != nil {
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
	}
}

// longOutage starts an election with two candidates, and makes the outage of the API server longer than its leader may
// be without the Lease. The outage ends when the other candidate leads.
func longOutage(s *system, target *cluster.Target) {
	kube := s.Cluster.Clientset()
	lease := metav1.ObjectMeta{Namespace: framework.SystemNamespace, Name: faultName}
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(kube.CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{}))).To(Succeed())
	})
	leads := make(chan string, 2)
	candidate := func(identity string) {
		background(func(ctx context.Context) error {
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
		})
	}
	leader := func(ctx context.Context, identity string) error {
		ctx, cancel := context.WithTimeout(ctx, steps.Timeout)
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
	candidate(first)
	Expect(leader(s.ctx, first)).To(Succeed())
	candidate(second)
	outage := target.Outage
	target.Outage = func(ctx context.Context, length time.Duration) error {
		if err := outage(ctx, length+leaseDuration); err != nil {
			return err
		}
		return leader(ctx, second)
	}
}

// withoutControllerManager ends the controller manager during the outage of the API server.
func withoutControllerManager(s *system, target *cluster.Target) {
	manager, outage := s.Cluster.Component(embedded.ControllerManager), target.Outage
	target.Outage = func(ctx context.Context, length time.Duration) error {
		return errors.Join(manager.Kill(), outage(ctx, length))
	}
	DeferCleanup(func(ctx SpecContext) { Expect(manager.Start(ctx)).To(Succeed()) })
}

func routerDeployment() client.Object {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: router}}
}

func ingressController() client.Object {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.OperatorNamespace, Name: scenario.DefaultIngressController}}
}
