// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	// fitClusters is the largest number of clusters, fitBatch of them in parallel on one control plane. A label in every
	// node selector separates their nodes, and their applications have different names.
	fitClusters = 200
	fitBatch    = 25
	// fitShare is the least percentage of drains that the check must allow, because a check that refuses everything would
	// be safe too. About a third are allowed. If one batch stays below it by chance, further batches follow.
	fitShare = 25
	// roundLabel is on all objects of a random cluster.
	roundLabel  = "sno-round"
	fitSpace    = "fit"
	settleLimit = 90 * time.Second
	fitPoll     = 200 * time.Millisecond
)

// On each random cluster a worker is drained by evictions if the check reports room. A pod without a node is a failure.
var _ = DescribeTable("The real scheduler places every pod of a drain that the fit check allows",
	func(ctx SpecContext, atLeast int, randomSeed func() int64) {
		outliving, started := steps.Outliving(ctx)
		c, err := embedded.Start(outliving, embedded.Config{CRDs: []string{}, Progress: GinkgoWriter, Keep: suite.Keep()})
		started()
		Expect(err).NotTo(HaveOccurred())
		steps.UntilEnd(c, func() { _ = c.Stop() })
		Expect(c.EnsureNamespace(ctx, fitSpace)).To(Succeed())
		factory := informers.NewSharedInformerFactory(c.Clientset(), 0)
		pods := factory.Core().V1().Pods().Informer()
		Expect(pods.AddIndexers(cache.Indexers{roundLabel: func(object any) ([]string, error) {
			return []string{object.(*corev1.Pod).Labels[roundLabel]}, nil
		}})).To(Succeed())
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())

		first := uint64(randomSeed()) //nolint:gosec // any number will do
		everyRound := func(rounds []*round, do func(*round, context.Context) error) {
			GinkgoHelper()
			group, ctx := errgroup.WithContext(ctx)
			for _, r := range rounds {
				group.Go(func() error {
					if err := do(r, ctx); err != nil {
						return fmt.Errorf("random cluster %d: %w", r.randomSeed, err)
					}
					return nil
				})
			}
			Expect(group.Wait()).To(Succeed())
		}
		reasons := map[string]int{}
		count, moved := 0, 0
		tooFew := func() bool { return reasons[fit.ReasonRoomElsewhere]*100 < count*fitShare }
		for ; count < atLeast || count < fitClusters && tooFew(); count += fitBatch {
			rounds := make([]*round, fitBatch)
			var nodes []embedded.NodeSpec
			for i := range rounds {
				rounds[i] = newRound(c, pods.GetIndexer(), first+uint64(count+i)) //nolint:gosec // few
				nodes = append(nodes, rounds[i].nodes()...)
			}
			Expect(c.AddNodes(ctx, nodes...)).To(Succeed())
			everyRound(rounds, (*round).build)
			everyRound(rounds, (*round).settle)
			everyRound(rounds, (*round).drain)
			Expect(tearDown(ctx, c.Clientset())).To(Succeed())
			for _, r := range rounds {
				reasons[r.verdict.Reason]++
				moved += r.moved
			}
		}
		AddReportEntry(fmt.Sprintf("%d pods moved, results of the check", moved), reasons)
		Expect(tooFew()).To(BeFalse(), "%d of %d drains were allowed, want %d%%", reasons[fit.ReasonRoomElsewhere], count, fitShare)
	},
	Entry("on a few random clusters", Label(suite.Smoke), fitBatch, func() int64 { return 1 }),
	Entry("on many random clusters, which --seed=NUMBER repeats", Label(suite.Long), fitClusters, GinkgoRandomSeed),
)

type round struct {
	kube       kubernetes.Interface
	client     client.Client
	pods       cache.Indexer
	randomSeed uint64
	random     *rand.Rand
	id         string
	workers    []string
	// replicas are the wanted pods of each application.
	replicas map[string]int32
	verdict  fit.Verdict
	moved    int
}

func newRound(c *embedded.Cluster, pods cache.Indexer, randomSeed uint64) *round {
	return &round{
		kube: c.Clientset(), client: c.Client(), pods: pods, randomSeed: randomSeed, random: rand.New(rand.NewPCG(randomSeed, randomSeed)), //nolint:gosec // a test
		id: fmt.Sprint(randomSeed), replicas: map[string]int32{},
	}
}

func (r *round) chance(percent int) bool { return r.random.IntN(100) < percent }

func (r *round) nodes() []embedded.NodeSpec {
	var nodes []embedded.NodeSpec
	if r.chance(50) {
		nodes = append(nodes, embedded.NodeSpec{
			Name: "m-" + r.id, Roles: []string{"master", "control-plane"},
			Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}},
		})
	}
	for i := range 2 + r.random.IntN(4) {
		worker := embedded.NodeSpec{Name: fmt.Sprintf("w%d-%s", i, r.id), Roles: []string{"worker"}}
		if r.chance(20) {
			worker.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}[r.random.IntN(2)]}}
		}
		nodes, r.workers = append(nodes, worker), append(r.workers, worker.Name)
	}
	for i := range nodes {
		nodes[i].Labels = map[string]string{roundLabel: r.id, corev1.LabelTopologyZone: fmt.Sprint("z", r.random.IntN(3))}
		if r.chance(40) {
			nodes[i].Labels["disk"] = "ssd"
		}
		nodes[i].Capacity = corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(4+r.random.Int64N(13), resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity((8+r.random.Int64N(25))<<30, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity((20+r.random.Int64N(80))<<30, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(6+r.random.Int64N(20), resource.DecimalSI),
		}
	}
	return nodes
}

func (r *round) build(ctx context.Context) error {
	apps := 2 + r.random.IntN(3*len(r.workers))
	for i := range apps {
		if err := r.addApp(ctx, fmt.Sprintf("app%d-%s", i, r.id), fmt.Sprintf("app%d-%s", r.random.IntN(apps), r.id)); err != nil {
			return err
		}
	}
	return nil
}

// addApp creates a random application that may depend on another one, and possibly its budget.
func (r *round) addApp(ctx context.Context, name, other string) error {
	replicas := 1 + r.random.Int32N(4)
	r.replicas[name] = replicas
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, roundLabel: r.id}}, Spec: r.podSpec(name, other)}
	meta := metav1.ObjectMeta{Namespace: fitSpace, Name: name, Labels: map[string]string{roundLabel: r.id}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	var app client.Object
	switch kind := r.random.IntN(10); {
	case kind < 6:
		app = &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}}
	case kind < 8:
		app = &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template}}
	default:
		app = &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selector, Template: template, PodManagementPolicy: appsv1.ParallelPodManagement,
		}}
	}
	if err := r.client.Create(ctx, app); err != nil {
		return fmt.Errorf("make application %s: %w", name, err)
	}
	if !r.chance(15) {
		return nil
	}
	err := r.client.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: selector, MaxUnavailable: ptr.To(intstr.FromInt32(r.random.Int32N(5))),
	}})
	if err != nil {
		return fmt.Errorf("make the budget over application %s: %w", name, err)
	}
	return nil
}

func (r *round) podSpec(name, other string) corev1.PodSpec {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(100*r.random.Int64N(15), resource.DecimalSI)}
	if r.chance(70) {
		requests[corev1.ResourceMemory] = *resource.NewQuantity(r.random.Int64N(3<<30), resource.BinarySI)
	}
	if r.chance(15) {
		requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(r.random.Int64N(20<<30), resource.BinarySI)
	}
	spec := corev1.PodSpec{
		NodeSelector:                  map[string]string{roundLabel: r.id},
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers:                    []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: requests}}},
	}
	if r.chance(10) {
		spec.InitContainers = []corev1.Container{{Name: "init", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(100*r.random.Int64N(20), resource.DecimalSI)}}}}
	}
	if r.chance(15) {
		spec.NodeSelector["disk"] = "ssd"
	}
	if r.chance(25) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	}
	if r.chance(10) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists})
	}
	if r.chance(20) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	if r.chance(10) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000 + r.random.Int32N(3)}}
	}
	if r.chance(1) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}
	}
	near := func(app string) []corev1.PodAffinityTerm {
		key := corev1.LabelHostname
		if r.chance(30) {
			key = corev1.LabelTopologyZone
		}
		return []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}}
	}
	switch {
	case r.chance(10):
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near(name)}}
	case r.chance(6):
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near(other)}}
	case r.chance(4):
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near(other)}}
	}
	return spec
}

// settle waits until every pod has a node or is unschedulable, and deletes the applications of the latter.
func (r *round) settle(ctx context.Context) error {
	var unplaced []string
	err := r.wait(ctx, func(pods []*corev1.Pod) string {
		unplaced = nil
		for _, pod := range pods {
			switch {
			case pod.Status.Phase == corev1.PodRunning:
			case pod.Spec.NodeName == "" && unschedulable(pod):
				unplaced = append(unplaced, pod.Labels["app"])
			default:
				return "pod " + pod.Name + " is not settled"
			}
		}
		return r.missing(pods)
	})
	if err != nil {
		return err
	}
	for _, app := range unplaced {
		delete(r.replicas, app)
		meta := metav1.ObjectMeta{Namespace: fitSpace, Name: app}
		for _, object := range []client.Object{
			&appsv1.Deployment{ObjectMeta: meta}, &appsv1.ReplicaSet{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta},
		} {
			err := r.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete application %s: %w", app, err)
			}
		}
	}
	if err := r.wait(ctx, r.placed); err != nil {
		return err
	}
	return r.budgetsSeen(ctx)
}

// budgetsSeen waits until the status of the budgets is current.
func (r *round) budgetsSeen(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, fitPoll, settleLimit, true, func(ctx context.Context) (bool, error) {
		budgets, err := r.kube.PolicyV1().PodDisruptionBudgets(fitSpace).List(ctx, metav1.ListOptions{LabelSelector: roundLabel + "=" + r.id})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(budgets.Items, func(budget policyv1.PodDisruptionBudget) bool {
			return budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy != r.replicas[budget.Name]
		}), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the budgets: %w", err)
	}
	return nil
}

// drain calls the check for a worker. If it allows the drain, drain evicts all pods and waits until all have a node
// again.
func (r *round) drain(ctx context.Context) error {
	in, err := r.read(ctx)
	if err != nil {
		return err
	}
	leaving := r.workers[r.random.IntN(len(r.workers))]
	if len(in.Pods) > 0 {
		leaving = in.Pods[r.random.IntN(len(in.Pods))].Spec.NodeName
	}
	moving := slices.DeleteFunc(slices.Clone(in.Pods), func(pod corev1.Pod) bool { return pod.Spec.NodeName != leaving })
	if r.verdict = fit.Check(in, leaving); !r.verdict.Fits {
		return nil
	}
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	if _, err := r.kube.CoreV1().Nodes().Patch(ctx, leaving, types.MergePatchType, cordon, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cordon: %w", err)
	}
	r.random.Shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
	for _, pod := range moving {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		// The check has included the budgets, so none may refuse.
		if err := r.kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction); err != nil {
			return fmt.Errorf("evict pod %s from node %s: %w", pod.Name, leaving, err)
		}
		r.moved++
	}
	err = r.wait(ctx, func(pods []*corev1.Pod) string {
		for _, pod := range pods {
			if pod.Spec.NodeName == leaving {
				return "pod " + pod.Name + " is still on the node"
			}
		}
		return r.placed(pods)
	})
	if err != nil {
		return fmt.Errorf("after node %s with %d pods was drained, as the check allows: %w", leaving, len(moving), err)
	}
	return nil
}

func (r *round) read(ctx context.Context) (fit.Cluster, error) {
	in := fit.Cluster{
		Nodes: []corev1.Node{}, Pods: []corev1.Pod{}, Budgets: []policyv1.PodDisruptionBudget{}, ReplicaSets: []appsv1.ReplicaSet{}, StatefulSets: []appsv1.StatefulSet{},
	}
	selected := metav1.ListOptions{LabelSelector: roundLabel + "=" + r.id}
	nodes, err := r.kube.CoreV1().Nodes().List(ctx, selected)
	pods, err2 := r.kube.CoreV1().Pods(fitSpace).List(ctx, selected)
	budgets, err3 := r.kube.PolicyV1().PodDisruptionBudgets(fitSpace).List(ctx, selected)
	replicaSets, err4 := r.kube.AppsV1().ReplicaSets(fitSpace).List(ctx, selected)
	statefulSets, err5 := r.kube.AppsV1().StatefulSets(fitSpace).List(ctx, selected)
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		return in, fmt.Errorf("read the cluster: %w", err)
	}
	in.Nodes, in.Pods, in.Budgets = append(in.Nodes, nodes.Items...), append(in.Pods, pods.Items...), append(in.Budgets, budgets.Items...)
	in.ReplicaSets, in.StatefulSets = append(in.ReplicaSets, replicaSets.Items...), append(in.StatefulSets, statefulSets.Items...)
	return in, nil
}

// tearDown deletes the clusters without waiting: the next ones have other names.
func tearDown(ctx context.Context, kube kubernetes.Interface) error {
	at, all := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, metav1.ListOptions{}
	err := errors.Join(
		kube.AppsV1().Deployments(fitSpace).DeleteCollection(ctx, at, all),
		kube.AppsV1().ReplicaSets(fitSpace).DeleteCollection(ctx, at, all),
		kube.AppsV1().StatefulSets(fitSpace).DeleteCollection(ctx, at, all),
		kube.PolicyV1().PodDisruptionBudgets(fitSpace).DeleteCollection(ctx, at, all),
		kube.CoreV1().Nodes().DeleteCollection(ctx, at, all),
	)
	if err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	return nil
}

func (r *round) wait(ctx context.Context, what func([]*corev1.Pod) string) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, fitPoll, settleLimit, true, func(context.Context) (bool, error) {
		objects, err := r.pods.ByIndex(roundLabel, r.id)
		if err != nil {
			return false, err
		}
		pods := make([]*corev1.Pod, len(objects))
		for i := range objects {
			pods[i] = objects[i].(*corev1.Pod)
		}
		last = what(pods)
		return last == "", nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, last)
	}
	return nil
}

// placed returns which pod is missing or has no node.
func (r *round) placed(pods []*corev1.Pod) string {
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			var why []string
			for _, condition := range pod.Status.Conditions {
				why = append(why, condition.Message)
			}
			return fmt.Sprintf("pod %s is %s on node %q %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName, strings.TrimSpace(strings.Join(why, " ")))
		}
	}
	return r.missing(pods)
}

func (r *round) missing(pods []*corev1.Pod) string {
	have := map[string]int32{}
	for _, pod := range pods {
		have[pod.Labels["app"]]++
	}
	if !maps.Equal(have, r.replicas) {
		return fmt.Sprintf("have pods %v, want %v", have, r.replicas)
	}
	return ""
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
	})
}
