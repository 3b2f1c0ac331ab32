// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/testcluster/apiserver"
)

const (
	mebi = 1 << 20
	// oneIn is of how many clusters one is not settled.
	oneIn = 100
	// perDecision is how many clusters a PlacementDecision has at most.
	perDecision = 100
)

// BenchmarkStatus measures kubectl sno fleet status as a process of its own, on clusters whose ManifestWorks have the real
// manifests of all modules.
func BenchmarkStatus(b *testing.B) {
	h := newHub(b, "base-1", "base-2")
	objects := rendered(b)
	filled := 0
	for _, n := range []int{100, 500, 2000} {
		began := time.Now()
		size := h.fill(objects, filled, n)
		b.Logf("%d clusters with ManifestWorks of %d kB in %s", n-filled, size/1000, time.Since(began).Round(time.Second))
		filled = n
		for _, args := range [][]string{{"fleet", "status"}, {"fleet", "status", "--details"}} {
			b.Run(fmt.Sprint(n, "/", args[len(args)-1]), func(b *testing.B) {
				var peak int64
				var busy time.Duration
				for b.Loop() {
					process := apiserver.Command(io.Discard, append(args, "--kubeconfig", h.kubeconfig)...)
					_ = process.Run()
					if code := process.ProcessState.ExitCode(); code != 6 {
						b.Fatalf("exit code %d", code)
					}
					busy += process.ProcessState.UserTime() + process.ProcessState.SystemTime()
					peak = max(peak, process.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
				}
				b.ReportMetric(float64(peak)/mebi, "RSS-MiB")
				b.ReportMetric(busy.Seconds()/float64(b.N), "CPU-s/op")
			})
		}
	}
}

// fill adds clusters as real work agents leave them, and returns the size of a ManifestWork.
func (h *hub) fill(objects []*unstructured.Unstructured, from, to int) int {
	h.Helper()
	config := h.server.Config(h.TB, "hub", "system:masters")
	config.QPS = -1
	namespaces, err := kubernetes.NewForConfig(config)
	apiserver.NoError(h.TB, err)
	var work workv1.ManifestWork
	for _, o := range objects {
		text, err := json.Marshal(o)
		apiserver.NoError(h.TB, err)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Group: o.GroupVersionKind().Group},
			Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, metav1.ConditionTrue), condition(workv1.ManifestAvailable, metav1.ConditionTrue)},
		})
	}
	var example addonv1alpha1.ManagedClusterAddOn
	apiserver.NoError(h.TB, h.admin.Get(h.Context(), client.ObjectKey{Namespace: "base-1", Name: fleet.AddOn}, &example))
	group, ctx := errgroup.WithContext(h.Context())
	group.SetLimit(4)
	for i := from; i < to; i++ {
		group.Go(func() error {
			name := fmt.Sprintf("many-%04d", i)
			_, err := namespaces.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "many"}}}
			status := clusterv1.ManagedClusterStatus{
				ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: "SingleReplica"}},
				Conditions: []metav1.Condition{
					condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue), condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue),
				},
			}
			a := example.DeepCopy()
			a.ObjectMeta = metav1.ObjectMeta{Namespace: name, Name: fleet.AddOn}
			w := work.DeepCopy()
			w.ObjectMeta = metav1.ObjectMeta{Namespace: name, Name: "addon-sno-deploy-0", Labels: map[string]string{addonv1alpha1.AddonLabelKey: fleet.AddOn}}
			inForce := metav1.ConditionTrue
			if i%oneIn == 0 {
				inForce, a.Status.Conditions[0].Status = metav1.ConditionFalse, metav1.ConditionFalse
			}
			for _, m := range feedback.Modules() {
				w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, reportedBy(m, string(inForce)))
			}
			addonStatus, workStatus := a.Status, w.Status
			for _, err := range []error{h.admin.Create(ctx, c), h.admin.Create(ctx, a), h.admin.Create(ctx, w)} {
				if err != nil {
					return err
				}
			}
			c.Status, a.Status, w.Status = status, addonStatus, workStatus
			for _, object := range []client.Object{c, a, w} {
				if err := h.admin.Status().Update(ctx, object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	apiserver.NoError(h.TB, group.Wait())
	for i := from; i < to; i += perDecision {
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.config.Namespace, Name: fmt.Sprint("many-", i), Labels: map[string]string{clusterv1beta1.PlacementLabel: rollout.SingleNodes},
		}}
		apiserver.NoError(h.TB, h.admin.Create(h.Context(), decision))
		for j := range perDecision {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: fmt.Sprintf("many-%04d", i+j)})
		}
		apiserver.NoError(h.TB, h.admin.Status().Update(h.Context(), decision))
	}
	var one workv1.ManifestWork
	apiserver.NoError(h.TB, h.admin.Get(h.Context(), client.ObjectKey{Namespace: "many-0000", Name: "addon-sno-deploy-0"}, &one))
	text, err := json.Marshal(one)
	apiserver.NoError(h.TB, err)
	return len(text)
}

func reportedBy(m feedback.Module, inForce string) workv1.ManifestCondition {
	out := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Kind: m.Kind.Kind, Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: m.Resource.Namespace, Name: m.Resource.Name},
		Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, metav1.ConditionTrue)},
	}
	for name, value := range map[string]string{
		"inForce": inForce, "inProgress": "False", "failing": "False", "reason": "AsExpected", "since": "2026-01-02T03:04:05Z",
		"message": "The operands of the module are shaped for the topology of the cluster",
	} {
		out.StatusFeedbacks.Values = append(out.StatusFeedbacks.Values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value}})
	}
	return out
}
