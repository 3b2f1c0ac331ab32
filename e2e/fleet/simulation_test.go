// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1alpha1"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workinformers "open-cluster-management.io/api/client/work/informers/externalversions"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/e2e/framework/hub"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/fleet"
	rules "github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	// simulatedAgents is how many ManifestWorks are answered at a time.
	simulatedAgents = 8
	// settling is for 1,500 more clusters on two busy cores.
	settling = 40 * time.Minute
	// quiet is how long the manager writes nothing when it has settled.
	quiet = 15 * time.Second

	managerUser = "system:serviceaccount:" + fleetNamespace + ":sno-fleet-controller"
	mebi        = 1 << 20
)

var (
	simulated = flag.String("simulated", "100,500,2000", "numbers of simulated clusters, ascending")
	atRest    = flag.Duration("at-rest", time.Minute, "how long simulated clusters are at rest")
)

var _ = It("Thousands of clusters, whose ManifestWorks a small program answers", Label("figures"), NodeTimeout(3*time.Hour), func(ctx SpecContext) {
	Expect(programs.BuildAll(ctx, GinkgoWriter, programs.FleetController, programs.KubectlSNO)).To(Succeed())
	h := suite.Must(hub.Start(context.WithoutCancel(ctx), embedded.Config{Keep: suite.Keep(), Progress: GinkgoWriter}))
	DeferCleanup(func() { _ = h.Stop() })
	s := simulate(ctx, h)
	manage(ctx, h)
	applyTyped(ctx, h, rollout.AddOn(rollout.Group{
		Namespace: fleetNamespace, Placement: rollout.Canaries, Configuration: configure(ctx, h, "v1", rules.Names()...).Name,
		Limits: rollout.Limits{MaxConcurrency: intstr.FromString("100%"), MaxFailures: intstr.FromInt32(0), ProgressDeadline: settling},
	}))
	for _, n := range []int{3, 20} {
		from := s.count
		s.add(ctx, from+n)
		began := time.Now()
		s.labelAsCanaries(ctx, from)
		Eventually(ctx, s.inForce, settling, poll).Should(Equal(s.count))
		suite.Record(suite.Fleet, suite.Figure(fmt.Sprintf("From the labels with which a Placement selects %d clusters to in force on all of them", n), "%s",
			suite.Seconds(time.Since(began))))
	}
	for text := range strings.SplitSeq(*simulated, ",") {
		n := suite.Must(strconv.Atoi(text))
		name := fmt.Sprintf("%d simulated clusters", n)
		from := s.count
		s.add(ctx, n)
		began, used := time.Now(), s.processor()
		s.labelAsCanaries(ctx, from)
		Eventually(ctx, s.inForce, settling, poll).Should(Equal(n))
		suite.Record(suite.Fleet, suite.Figure(fmt.Sprintf("%s: in force on the last %d", name, n-from), "%s after their labels, %.1f s of the manager's processor",
			suite.Seconds(time.Since(began)), s.processor()-used))

		Eventually(ctx, func() []string { // other writes follow, such as the claims of what a cluster has reported
			from := suite.Must(h.AuditOffset(ctx))
			suite.Elapse(ctx, quiet)
			return s.writes(ctx, from)
		}, settling, poll).Should(BeEmpty(), "what the manager has written in %s", quiet)
		offset := suite.Must(h.AuditOffset(ctx))
		used = s.processor()
		suite.Elapse(ctx, *atRest)
		busy, memory := s.processor()-used, suite.Must(s.manager().NewStatus())
		writes := s.writes(ctx, offset)
		suite.Record(suite.Fleet,
			suite.Row{What: fmt.Sprintf("%s at rest for %s: writes of the manager, but for its Lease", name, *atRest), Measured: strconv.Itoa(len(writes)),
				Bound: "0", Compared: "-", Held: len(writes) == 0},
			suite.Figure(name+" at rest: the manager", "RSS %d MiB (anonymous %d), %.1f millicores", memory.VmRSS/mebi, memory.RssAnon/mebi,
				1000*busy/atRest.Seconds()))

		took, peak := s.status(ctx)
		suite.Record(suite.Fleet, suite.Row{What: name + ": kubectl sno fleet status", Measured: fmt.Sprintf("%s, %d MiB", suite.Seconds(took), peak/mebi),
			Bound: "2 s, 256 MiB", Compared: "-", Held: took < 2*time.Second && peak < 256*mebi})
	}
})

// simulation is a hub with clusters that only a small program knows: it answers a ManifestWork as the agent of a
// single node does whose controllers work at once.
type simulation struct {
	hub    *hub.Hub
	client *clusterclient.Clientset
	addons addonlisters.ManagedClusterAddOnLister
	count  int
}

func simulate(ctx context.Context, h *hub.Hub) *simulation {
	GinkgoHelper()
	config := h.RESTConfig()
	config.QPS = -1
	works, addons := suite.Must(workclient.NewForConfig(config)), suite.Must(addonclient.NewForConfig(config))
	workCache, addonCache := workinformers.NewSharedInformerFactory(works, 0), addoninformers.NewSharedInformerFactory(addons, 0)
	changed := make(chan *workv1.ManifestWork)
	answer := func(object any) {
		work := object.(*workv1.ManifestWork)
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied); c == nil || c.ObservedGeneration != work.Generation {
			select {
			case changed <- work:
			case <-ctx.Done():
			}
		}
	}
	suite.Must(workCache.Work().V1().ManifestWorks().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: answer, UpdateFunc: func(_, object any) { answer(object) }}))
	for range simulatedAgents {
		go func() {
			for {
				select {
				case work := <-changed:
					// Another answer follows a conflict: it is with another generation.
					_, _ = works.WorkV1().ManifestWorks(work.Namespace).UpdateStatus(ctx, answered(work), metav1.UpdateOptions{})
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	s := &simulation{hub: h, client: suite.Must(clusterclient.NewForConfig(config)), addons: addonCache.Addon().V1alpha1().ManagedClusterAddOns().Lister()}
	workCache.Start(ctx.Done())
	addonCache.Start(ctx.Done())
	return s
}

// answered returns a ManifestWork with the status of a cluster on which everything is in force.
func answered(work *workv1.ManifestWork) *workv1.ManifestWork {
	work = work.DeepCopy()
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Simulated", ObservedGeneration: work.Generation, LastTransitionTime: metav1.Now()}
	}
	conditions := []metav1.Condition{condition(workv1.WorkApplied), condition(workv1.WorkAvailable)}
	work.Status = workv1.ManifestWorkStatus{Conditions: conditions}
	for i, m := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(m.Raw) != nil {
			continue
		}
		kind := object.GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		its := workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Ordinal: int32(i), Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: resource.Resource,
				Namespace: object.GetNamespace(), Name: object.GetName(),
			},
			Conditions: []metav1.Condition{condition(workv1.ManifestApplied), condition(workv1.ManifestAvailable)},
		}
		for name, value := range reported(object) {
			its.StatusFeedbacks.Values = append(its.StatusFeedbacks.Values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value}})
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, its)
	}
	return work
}

// reported returns what the feedback rules find in an object of such a cluster.
func reported(object *unstructured.Unstructured) map[string]string {
	switch object.GetKind() {
	case "Deployment":
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
		return map[string]string{"image": image}
	case "Infrastructure":
		return map[string]string{"controlPlaneTopology": string(configv1.SingleReplicaTopologyMode), "infrastructureTopology": string(configv1.SingleReplicaTopologyMode)}
	}
	if !slices.ContainsFunc(rules.Modules(), func(m rules.Module) bool { return m.Kind == object.GroupVersionKind() }) {
		return nil
	}
	return map[string]string{
		"inForce": "True", "inProgress": "False", "failing": "False", "reason": patch.ReasonAsExpected, "since": time.Now().UTC().Format(time.RFC3339),
		"message": "The operands of the module have the shape of the topology",
	}
}

// add adds clusters that are never away until there are so many, and waits until the hub has made what a cluster joins with.
func (s *simulation) add(ctx context.Context, count int) {
	GinkgoHelper()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(simulatedAgents)
	for ; s.count < count; s.count++ {
		name := simulatedName(s.count)
		group.Go(func() error {
			clusters := s.client.ClusterV1().ManagedClusters()
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, int32((24 * time.Hour).Seconds())
			if _, err := clusters.Create(groupCtx, cluster, metav1.CreateOptions{}); err != nil {
				return err
			}
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				cluster, err := clusters.Get(groupCtx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: string(configv1.SingleReplicaTopologyMode)}}
				for _, kind := range []string{clusterv1.ManagedClusterConditionAvailable, clusterv1.ManagedClusterConditionJoined} {
					meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Simulated"})
				}
				_, err = clusters.UpdateStatus(groupCtx, cluster, metav1.UpdateOptions{})
				return err
			})
		})
	}
	Expect(group.Wait()).To(Succeed())
	Eventually(ctx, func() (int, error) {
		leases, err := s.hub.Clientset().CoordinationV1().Leases("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=managed-cluster-lease"})
		if err != nil {
			return 0, err
		}
		return len(leases.Items), nil
	}, settling, time.Second).Should(Equal(count))
}

func simulatedName(i int) string { return fmt.Sprintf("simulated-%04d", i) }

func (s *simulation) labelAsCanaries(ctx context.Context, from int) {
	GinkgoHelper()
	for i := from; i < s.count; i++ {
		suite.Must(s.client.ClusterV1().ManagedClusters().Patch(ctx, simulatedName(i), types.MergePatchType,
			[]byte(`{"metadata": {"labels": {"`+fleet.CanaryLabel+`": ""}}}`), metav1.PatchOptions{}))
	}
}

// inForce returns on how many clusters the add-on is healthy.
func (s *simulation) inForce() (count int, err error) {
	all, err := s.addons.List(labels.Everything())
	for _, addon := range all {
		if meta.IsStatusConditionTrue(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable) {
			count++
		}
	}
	return count, err
}

// status returns how long kubectl sno fleet status takes, and its most memory in bytes. The kernel's own figure of a child
// has the memory of this process in it.
func (s *simulation) status(ctx context.Context) (took time.Duration, peak uint64) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, suite.Must(programs.Build(ctx, programs.KubectlSNO, GinkgoWriter)), "fleet", "status", "--kubeconfig", s.hub.KubeconfigPath())
	began := time.Now()
	Expect(command.Start()).To(Succeed())
	ended := make(chan error)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			Expect(err).NotTo(HaveOccurred())
			return time.Since(began), peak
		case <-time.After(10 * time.Millisecond):
			if process, err := procfs.NewProc(command.Process.Pid); err == nil {
				if memory, err := process.NewStatus(); err == nil {
					peak = max(peak, memory.VmHWM)
				}
			}
		}
	}
}

func (s *simulation) manager() procfs.Proc {
	GinkgoHelper()
	return suite.Must(procfs.NewProc(s.hub.Program(programs.FleetController.Name).PID()))
}

// processor returns the seconds of processor that the manager has used.
func (s *simulation) processor() float64 {
	GinkgoHelper()
	return suite.Must(s.manager().Stat()).CPUTime()
}

// writes returns what the manager has written, but for its Lease.
func (s *simulation) writes(ctx context.Context, since int64) (all []string) {
	GinkgoHelper()
	events, _, err := s.hub.AuditEvents(ctx, since, embedded.AuditFilter{WritesOnly: true, User: managerUser})
	Expect(err).NotTo(HaveOccurred())
	for _, event := range events {
		if event.ObjectRef.Resource != "leases" {
			all = append(all, event.Verb+" "+event.RequestURI)
		}
	}
	return all
}
