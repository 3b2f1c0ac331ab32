// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	stockPrefix  = "etcd-guard-"
	stockApp     = "guard"
	stockAccount = "guard-sa"
	stockPort    = 9980
	guardImage   = "cluster-etcd-operator"
)

var (
	errNoTopology = errors.New("the control-plane topology is not set")
	errNoOperand  = errors.New("missing the pod of etcd on a node")

	operandLabels = client.MatchingLabels{"etcd": "true"}
)

// stockGuards is the guard controller of the stock operator (U-ETC-7, U-ETC-9), with its faults: a pod that is pinned
// to each control-plane node, and a PodDisruptionBudget for the number of these nodes; neither on SingleReplica. It
// watches nodes, pods and the budget, but not the Infrastructure: a topology change takes effect at the next event of
// those.
type stockGuards struct {
	client client.Client
	// direct reads without a cache, so without a watch.
	direct client.Reader
}

func (g *stockGuards) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	infrastructure := &configv1.Infrastructure{}
	if err := g.direct.Get(ctx, client.ObjectKey{Name: etcdguard.OperatorName}, infrastructure); err != nil {
		return 0, fmt.Errorf("reading the Infrastructure: %w", err)
	}
	var nodes corev1.NodeList
	var pods, operands corev1.PodList
	if err := g.client.List(ctx, &nodes); err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	if err := g.client.List(ctx, &pods, client.InNamespace(etcdguard.Namespace), client.MatchingLabels(guardLabels)); err != nil {
		return 0, fmt.Errorf("listing guards: %w", err)
	}
	if err := g.client.List(ctx, &operands, client.InNamespace(etcdguard.Namespace), operandLabels); err != nil {
		return 0, fmt.Errorf("listing the pods of etcd: %w", err)
	}
	switch infrastructure.Status.ControlPlaneTopology { //nolint:exhaustive // as today
	case "":
		return 0, errNoTopology
	case configv1.SingleReplicaTopologyMode:
		return 0, g.remove(ctx, pods.Items)
	default:
		return 0, g.guard(ctx, slices.DeleteFunc(nodes.Items, notOfControlPlane), pods.Items, operands.Items)
	}
}

func notOfControlPlane(node corev1.Node) bool {
	_, master := node.Labels[etcdguard.MasterRole]
	_, arbiter := node.Labels[etcdguard.ArbiterRole]
	return !master && !arbiter
}

func (g *stockGuards) remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := standin.Delete(ctx, g.client, &pods[i]); err != nil {
			return err
		}
	}
	live, err := standin.Get(ctx, g.client, etcdguard.Namespace, etcdguard.PodsBudgetName, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return err
	}
	return standin.EnsureBudget(ctx, g.client, live, nil)
}

func (g *stockGuards) guard(ctx context.Context, nodes []corev1.Node, pods, operands []corev1.Pod) error {
	if len(nodes) == 0 {
		return nil
	}
	account, err := standin.Get(ctx, g.direct, etcdguard.Namespace, stockAccount, &corev1.ServiceAccount{})
	if err != nil {
		return err
	}
	if account == nil {
		account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: stockAccount, Labels: guardLabels}}
		if err := standin.Create(ctx, g.client, account); err != nil {
			return err
		}
	}
	live, err := standin.Get(ctx, g.client, etcdguard.Namespace, etcdguard.PodsBudgetName, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return err
	}
	if err := standin.EnsureBudget(ctx, g.client, live, stockBudget(live, len(nodes))); err != nil {
		return err
	}
	var errs []error
	for i := range nodes {
		errs = append(errs, g.guardNode(ctx, &nodes[i], pods, operands))
	}
	return errors.Join(errs...)
}

// stockBudget allows the eviction of one of several guards, and of the only one. Other fields of a live one stay.
func stockBudget(live *policyv1.PodDisruptionBudget, nodes int) *policyv1.PodDisruptionBudget {
	budget := live.DeepCopy()
	if budget == nil {
		budget = &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.PodsBudgetName},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: guardLabels}},
		}
	}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt(max(nodes-1, 0)))
	return budget
}

// guardNode creates the guard of a node, and replaces one that has ended. A node that is cordoned or not Ready gets
// none, and a Ready one without a pod of etcd is an error.
func (g *stockGuards) guardNode(ctx context.Context, node *corev1.Node, pods, operands []corev1.Pod) error {
	if at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node.Name }); at >= 0 {
		if !ended(&pods[at]) {
			return nil
		}
		return standin.Delete(ctx, g.client, &pods[at]) // the event of the deletion causes the creation
	}
	if node.Spec.Unschedulable || !nodeReady(node) {
		return nil
	}
	if !slices.ContainsFunc(operands, func(p corev1.Pod) bool { return p.Spec.NodeName == node.Name }) {
		return fmt.Errorf("%w: %s", errNoOperand, node.Name)
	}
	return standin.Create(ctx, g.client, stockPod(node.Name))
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func stockPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: etcdguard.Namespace, Name: stockPrefix + node, Labels: guardLabels,
			Annotations: map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`},
		},
		Spec: corev1.PodSpec{
			NodeName: node, PriorityClassName: "system-cluster-critical", ServiceAccountName: stockAccount, HostUsers: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](3), AutomountServiceAccountToken: ptr.To(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: stockApp, Image: guardImage,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
				}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
						Scheme: corev1.URISchemeHTTPS, Port: intstr.FromInt32(stockPort), Path: "readyz",
					}},
					PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: 3,
				},
			}},
		},
	}
}
