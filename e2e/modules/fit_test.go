// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
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
	fitPoll     = 400 * time.Millisecond
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
		first := uint64(randomSeed()) //nolint:gosec // any number will do
		everyRound := func(rounds []*round, do func(*round, context.Context)) {
			GinkgoHelper()
			var done atomic.Int32
			workqueue.ParallelizeUntil(ctx, len(rounds), len(rounds), func(i int) {
				defer GinkgoRecover()
				do(rounds[i], ctx)
				done.Add(1)
			})
			Expect(done.Load()).To(BeEquivalentTo(len(rounds)), "random clusters that have passed")
		}
		reasons := map[string]int{}
		count, moved := 0, 0
		tooFew := func() bool { return reasons[fit.ReasonRoomElsewhere]*100 < count*fitShare }
		for ; count < atLeast || count < fitClusters && tooFew(); count += fitBatch {
			rounds := make([]*round, fitBatch)
			var nodes []embedded.NodeSpec
			for i := range rounds {
				rounds[i] = newRound(c, first+uint64(count+i)) //nolint:gosec // few
				nodes = append(nodes, rounds[i].nodes()...)
			}
			Expect(c.AddNodes(ctx, nodes...)).To(Succeed())
			everyRound(rounds, (*round).build)
			everyRound(rounds, (*round).settle)
			everyRound(rounds, (*round).drain)
			tearDown(ctx, c.Client())
			for _, r := range rounds {
				reasons[r.verdict.Reason]++
				moved += r.moved
			}
		}
		AddReportEntry(fmt.Sprintf("%d pods moved, results of the check", moved), reasons)
		Expect(tooFew()).To(BeFalse(), "%d of %d drains were allowed, want %d%%", reasons[fit.ReasonRoomElsewhere], count, fitShare)
	},
	Entry("on a few random clusters", Label(suite.Long), fitBatch, func() int64 { return 1 }),
	Entry("on many random clusters, which --seed=NUMBER repeats", Label(suite.Long), fitClusters, GinkgoRandomSeed),
)

type round struct {
	client.Client
	randomSeed uint64
	random     *rand.Rand
	id         string
	workers    []string
	// replicas are the wanted pods of each application.
	replicas map[string]int32
	verdict  fit.Verdict
	moved    int
}

func newRound(c *embedded.Cluster, randomSeed uint64) *round {
	return &round{
		Client: c.Client(), randomSeed: randomSeed, random: rand.New(rand.NewPCG(randomSeed, randomSeed)), //nolint:gosec // a test
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

func (r *round) build(ctx context.Context) {
	apps := 2 + r.random.IntN(3*len(r.workers))
	for i := range apps {
		r.addApp(ctx, fmt.Sprintf("app%d-%s", i, r.id), fmt.Sprintf("app%d-%s", r.random.IntN(apps), r.id))
	}
}

// addApp creates a random application that may depend on another one, and possibly its budget.
func (r *round) addApp(ctx context.Context, name, other string) {
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
	Expect(r.Create(ctx, app)).To(Succeed())
	if r.chance(15) {
		Expect(r.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: selector, MaxUnavailable: ptr.To(intstr.FromInt32(r.random.Int32N(5))),
		}})).To(Succeed())
	}
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

// eventually waits until the pods of this cluster are as they should be.
func (r *round) eventually(ctx context.Context, what func(g Gomega, pods []corev1.Pod)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(r.List(ctx, pods, client.MatchingLabels{roundLabel: r.id})).To(Succeed())
		have := map[string]int32{}
		for _, pod := range pods.Items {
			have[pod.Labels["app"]]++
		}
		g.Expect(have).To(Equal(r.replicas))
		what(g, pods.Items)
	}).WithTimeout(settleLimit).WithPolling(fitPoll).Should(Succeed(), "random cluster %d", r.randomSeed)
}

// placed checks that every pod runs on a node other than one.
func placed(except string) func(Gomega, []corev1.Pod) {
	return func(g Gomega, pods []corev1.Pod) {
		for _, pod := range pods {
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), "pod %s on node %q: %v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
			g.Expect(pod.DeletionTimestamp).To(BeNil(), pod.Name)
			g.Expect(pod.Spec.NodeName).NotTo(Equal(except), pod.Name)
		}
	}
}

// settle waits until every pod has a node or is unschedulable, deletes the applications of the latter, and waits until
// the status of the budgets is current.
func (r *round) settle(ctx context.Context) {
	var unplaced []string
	r.eventually(ctx, func(g Gomega, pods []corev1.Pod) {
		unplaced = nil
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				g.Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodScheduled), HaveField("Reason", corev1.PodReasonUnschedulable))), pod.Name)
				unplaced = append(unplaced, pod.Labels["app"])
			}
		}
	})
	for _, app := range unplaced {
		delete(r.replicas, app)
		meta := metav1.ObjectMeta{Namespace: fitSpace, Name: app}
		for _, object := range []client.Object{
			&appsv1.Deployment{ObjectMeta: meta}, &appsv1.ReplicaSet{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta},
		} {
			Expect(client.IgnoreNotFound(r.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
		}
	}
	r.eventually(ctx, placed(""))
	Eventually(ctx, func(g Gomega) {
		budgets := &policyv1.PodDisruptionBudgetList{}
		g.Expect(r.List(ctx, budgets, client.MatchingLabels{roundLabel: r.id})).To(Succeed())
		for _, budget := range budgets.Items {
			g.Expect(budget.Status).To(And(HaveField("ObservedGeneration", budget.Generation), HaveField("CurrentHealthy", r.replicas[budget.Name])), budget.Name)
		}
	}).WithTimeout(settleLimit).WithPolling(fitPoll).Should(Succeed(), "random cluster %d", r.randomSeed)
}

// drain calls the check for a worker. If it allows the drain, drain evicts all pods and waits until all have a node
// again.
func (r *round) drain(ctx context.Context) {
	in := r.read(ctx)
	leaving := r.workers[r.random.IntN(len(r.workers))]
	if len(in.Pods) > 0 {
		leaving = in.Pods[r.random.IntN(len(in.Pods))].Spec.NodeName
	}
	moving := slices.DeleteFunc(slices.Clone(in.Pods), func(pod corev1.Pod) bool { return pod.Spec.NodeName != leaving })
	if r.verdict = fit.Check(in, leaving); !r.verdict.Fits {
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: leaving}}
	Expect(r.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`)))).To(Succeed())
	r.random.Shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
	for i := range moving {
		// The check has included the budgets, so none may refuse.
		Expect(r.SubResource("eviction").Create(ctx, &moving[i], &policyv1.Eviction{})).To(Succeed(), "random cluster %d, pod %s on node %s", r.randomSeed, moving[i].Name, leaving)
		r.moved++
	}
	r.eventually(ctx, placed(leaving))
}

// read reads what the check needs. No list is nil, which would be one that was not read.
func (r *round) read(ctx context.Context) fit.Cluster {
	var nodes corev1.NodeList
	var pods corev1.PodList
	var budgets policyv1.PodDisruptionBudgetList
	var replicaSets appsv1.ReplicaSetList
	var statefulSets appsv1.StatefulSetList
	for _, list := range []client.ObjectList{&nodes, &pods, &budgets, &replicaSets, &statefulSets} {
		Expect(r.List(ctx, list, client.MatchingLabels{roundLabel: r.id})).To(Succeed())
	}
	return fit.Cluster{
		Nodes: append([]corev1.Node{}, nodes.Items...), Pods: append([]corev1.Pod{}, pods.Items...), Budgets: append([]policyv1.PodDisruptionBudget{}, budgets.Items...),
		ReplicaSets: append([]appsv1.ReplicaSet{}, replicaSets.Items...), StatefulSets: append([]appsv1.StatefulSet{}, statefulSets.Items...),
	}
}

// tearDown deletes the clusters without waiting: the next ones have other names.
func tearDown(ctx context.Context, kube client.Client) {
	GinkgoHelper()
	for _, object := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}} {
		Expect(kube.DeleteAllOf(ctx, object, client.InNamespace(fitSpace), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	Expect(kube.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
}
