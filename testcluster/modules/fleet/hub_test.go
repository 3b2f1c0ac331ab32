// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli"
	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/plan"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/modules"
)

const person = "fleet-admin"

// hub is the API server as a hub.
type hub struct {
	testing.TB
	server     *apiserver.Server
	admin      client.WithWatch
	kubeconfig string
	config     *addonv1alpha1.AddOnDeploymentConfig
}

// newHub returns a hub whose Placement selects clusters: all but the last, which has no add-on.
func newHub(t testing.TB, clusters ...string) *hub {
	t.Helper()
	h := &hub{TB: t, server: shared.Server(t)}
	folder, err := assets.ModuleFolder(t.Context(), "open-cluster-management.io/api")
	apiserver.NoError(t, err)
	for _, file := range []string{
		"cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml",
		"cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml",
		"cluster/v1beta1/0000_03_clusters.open-cluster-management.io_placementdecisions.crd.yaml",
		"addon/v1alpha1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml",
		"addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml",
		"addon/v1alpha1/0000_02_addon.open-cluster-management.io_addondeploymentconfigs.crd.yaml",
		"work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml",
	} {
		h.server.Put(t, apiserver.Manifests(t, folder, file)[0])
	}
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, clusterv1.Install, clusterv1beta1.Install, addonv1alpha1.Install, workv1.Install} {
		apiserver.NoError(t, install(scheme))
	}
	config := h.server.Config(t, "hub", "system:masters")
	config.QPS = -1
	h.admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	apiserver.NoError(t, err)
	for _, list := range []client.ObjectList{
		&clusterv1.ManagedClusterList{}, &clusterv1beta1.PlacementList{}, &clusterv1beta1.PlacementDecisionList{}, &addonv1alpha1.ClusterManagementAddOnList{},
		&addonv1alpha1.ManagedClusterAddOnList{}, &addonv1alpha1.AddOnDeploymentConfigList{}, &workv1.ManifestWorkList{},
	} {
		apiserver.Eventually(t, "the API of hubs is served", func() error { return h.admin.List(t.Context(), list) })
	}
	h.kubeconfig = h.server.Kubeconfig(t, person, "system:masters")
	h.server.Put(t, modules.Object("v1", "Namespace", "", fleet.Namespace).Unstructured())
	h.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: fleet.Manager}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("manager"), LeaseDurationSeconds: ptr.To(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}})

	namespace := h.server.Namespace(t)
	content := configuration.Configuration{
		Modules: feedback.Names(), Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1",
		DrainPolicy: "never", Placement: "topology",
	}
	h.config = content.Object(namespace, "sno")
	h.create(h.config)
	placement := rollout.Placements(namespace, "global")[0]
	h.create(placement)
	h.create(rollout.AddOn(rollout.Group{Namespace: namespace, Placement: placement.Name, Configuration: h.config.Name, Limits: rollout.DefaultLimits}))
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: placement.Name, Labels: map[string]string{clusterv1beta1.PlacementLabel: placement.Name},
	}}
	h.create(decision)
	for i, name := range clusters {
		h.server.Put(t, modules.Object("v1", "Namespace", "", name).Unstructured())
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": strings.Split(name, "-")[0]}}}
		h.create(c)
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: "SingleReplica"}}
		c.Status.Conditions = []metav1.Condition{condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue)}
		apiserver.NoError(t, h.admin.Status().Update(t.Context(), c))
		if i == len(clusters)-1 {
			break
		}
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
		addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: fleet.AddOn, Finalizers: []string{addonv1alpha1.AddonPreDeleteHookFinalizer},
		}}
		h.create(addon)
		hash := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: namespace, Name: h.config.Name}, SpecHash: "x"}
		addon.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
			ConfigReferent:      hash.ConfigReferent, DesiredConfig: hash, LastAppliedConfig: hash,
		}}
		addon.Status.Conditions = []metav1.Condition{
			condition(addonv1alpha1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue), condition(addonv1alpha1.ManagedClusterAddOnManifestApplied, metav1.ConditionTrue),
		}
		apiserver.NoError(t, h.admin.Status().Update(t.Context(), addon))
	}
	apiserver.NoError(t, h.admin.Status().Update(t.Context(), decision))
	return h
}

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: "A sentence", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}
}

func (h *hub) create(object client.Object) {
	h.Helper()
	apiserver.NoError(h.TB, h.admin.Create(h.Context(), object))
	h.Cleanup(func() { // tests share the hub
		ctx := context.WithoutCancel(h.Context())
		object.SetFinalizers(nil)
		_ = h.admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		apiserver.NoError(h.TB, client.IgnoreNotFound(h.admin.Delete(ctx, object)))
	})
}

// away changes a cluster to one that does not report.
func (h *hub) away(name string) {
	h.Helper()
	c := &clusterv1.ManagedCluster{}
	apiserver.NoError(h.TB, h.admin.Get(h.Context(), client.ObjectKey{Name: name}, c))
	c.Status.Conditions = []metav1.Condition{condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown)}
	c.Status.Conditions[0].Reason = "ManagedClusterLeaseUpdateStopped"
	apiserver.NoError(h.TB, h.admin.Status().Update(h.Context(), c))
}

// sno runs kubectl sno fleet as the person and returns its output and exit code.
func (h *hub) sno(input string, args ...string) (string, string, int) {
	h.Helper()
	var out, errOut bytes.Buffer
	code := cli.Main(append([]string{"fleet", "--kubeconfig", h.kubeconfig}, args...), genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &errOut})
	return out.String(), errOut.String(), code
}

// refused runs a command that must say one sentence and change nothing.
func (h *hub) refused(want string, args ...string) {
	h.Helper()
	h.server.NoWrites(h.TB, person, func() {
		if out, errOut, code := h.sno("", args...); code != 1 || out != "" || !strings.Contains(errOut, want) {
			h.Errorf("%v: exit code %d\n%s%s\nwant %q", args, code, out, errOut, want)
		}
	})
}

func TestStatus(t *testing.T) {
	h := newHub(t, "east-1", "east-2", "west-1", "none-1")
	h.away("east-2")
	for args, want := range map[string]struct {
		code int
		rows string
	}{
		"status":                {5, "east-2 Away ManagedClusterLeaseUpdateStopped v1|east-1 Settled AsExpected v1|west-1 Settled AsExpected v1"},
		"status -l region=west": {0, "west-1 Settled AsExpected v1"},
		"status east-1":         {0, "east-1 Settled AsExpected v1"},
		"status --reason ManagedClusterLeaseUpdateStopped": {5, "east-2 Away ManagedClusterLeaseUpdateStopped v1"},
		// No work agent has reported anything.
		"status east-1 --details": {4, "east-1 Installing NotReported v1"},
	} {
		out, errOut, code := h.sno("", append(strings.Fields(args), "-o", `jsonpath={range .clusters[*]}{.cluster} {.state} {.reason} {.version}|{end}`)...)
		if code != want.code || out != want.rows+"|" || errOut != "" {
			t.Errorf("%s: exit code %d, %s%s\nwant %d, %s", args, code, out, errOut, want.code, want.rows)
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: fleet.Manager}}
	for _, c := range [][2]string{{`{"spec":{"renewTime":"2026-01-02T03:04:05.000000Z"}}`, "was last renewed "}, {`{"spec":{"holderIdentity":""}}`, "nobody holds"}} {
		apiserver.NoError(t, h.admin.Patch(t.Context(), lease, client.RawPatch("application/merge-patch+json", []byte(c[0]))))
		if out, errOut, code := h.sno("", "status", "east-1"); code != 4 || !strings.Contains(out, "NotReported") || !strings.Contains(errOut, c[1]) {
			t.Errorf("without a manager: exit code %d, %s%s", code, out, errOut)
		}
	}
	h.refused("no ManagedCluster with --selector=region=north", "status", "-l", "region=north")
	h.refused("none has the reason Reverted", "status", "--reason", "Reverted")
	h.refused("no cluster none-1", "status", "none-1")
	h.refused("the hub has no ManagedCluster east-9", "opt-out", "east-9")
	h.refused("name clusters, or select some", "undo")

	page, junit := filepath.Join(t.TempDir(), "fleet.html"), filepath.Join(t.TempDir(), "fleet.xml")
	if out, errOut, code := h.sno("", "check", "--html", page, "--junit", junit); code != 0 || !strings.Contains(out, "west-1") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	for _, file := range []string{page, junit} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "SNO-TOP-001") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// agents play the work agents of all spokes, whose API server is that of the hub: what the Pod of a plan does is done here
// with the rights of its account. A broken cluster cannot pull the image.
func (h *hub) agents(broken string) {
	events, err := h.admin.Watch(h.Context(), &workv1.ManifestWorkList{})
	apiserver.NoError(h.TB, err)
	h.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if work, is := event.Object.(*workv1.ManifestWork); is && event.Type == watch.Added && strings.HasPrefix(work.Name, plan.Name) {
				h.answer(work, work.Namespace == broken)
			}
		}
	}()
}

func (h *hub) answer(work *workv1.ManifestWork, broken bool) {
	var pod *unstructured.Unstructured
	for _, m := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(m.Raw); err != nil {
			h.Error(err)
			return
		}
		if object.GetKind() == "Pod" {
			pod = object
			continue
		}
		if err := h.server.Admin(h.TB).Apply(h.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("work-agent"), client.ForceOwnership); err != nil {
			h.Error(err)
		}
	}
	work.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, metav1.ConditionTrue)}
	work.Status.Conditions[0].ObservedGeneration = work.Generation
	if pod == nil {
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{}
		if err := h.admin.Status().Update(h.Context(), work); err != nil {
			h.Error(err)
		}
		return
	}
	state := map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff"}}
	if !broken {
		state = map[string]any{"terminated": map[string]any{"exitCode": int64(0), "message": h.run(pod)}}
	}
	pod.Object["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{"state": state}}}
	reported := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Resource: "pods", Namespace: pod.GetNamespace(), Name: pod.GetName()}, Conditions: []metav1.Condition{},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: values(work.Spec.ManifestConfigs[0], pod)},
	}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{reported}
	if err := h.admin.Status().Update(h.Context(), work); err != nil {
		h.Error(err)
	}
}

// values are what the work agent reads of an object.
func values(option workv1.ManifestConfigOption, object *unstructured.Unstructured) (all []workv1.FeedbackValue) {
	for _, path := range option.FeedbackRules[0].JsonPaths {
		j := jsonpath.New(path.Name).AllowMissingKeys(true)
		var value bytes.Buffer
		if err := j.Parse("{" + path.Path + "}"); err != nil || j.Execute(&value, object.Object) != nil || value.Len() == 0 {
			continue
		}
		text := value.String()
		field := workv1.FieldValue{Type: workv1.String, String: &text}
		if number := int64(0); path.Name == "exitCode" {
			field = workv1.FieldValue{Type: workv1.Integer, Integer: &number}
		}
		all = append(all, workv1.FeedbackValue{Name: path.Name, Value: field})
	}
	return all
}

// run does what the Pod does and returns its termination message.
func (h *hub) run(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	container := containers[0].(map[string]any)
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	log, account := filepath.Join(h.TempDir(), "log"), h.server.AccountKubeconfig(h.TB, pod.GetNamespace(), plan.Name, "")
	for i := range args {
		if args[i] == container["terminationMessagePath"] {
			args[i] = log
		}
	}
	var errOut bytes.Buffer
	cli.Main(append(args, "--kubeconfig", account), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &errOut})
	text, err := os.ReadFile(log)
	if err != nil {
		h.Error(err, errOut.String())
	}
	return string(text)
}

func TestPlan(t *testing.T) {
	h := newHub(t, "plan-1", "plan-2", "plan-3", "plan-4", "none-2")
	h.away("plan-3")
	singleNode(t, h.server)
	for _, name := range []string{"openshift-ingress-operator", "openshift-ingress"} {
		h.server.Put(t, modules.Object("v1", "Namespace", "", name).Unstructured())
	}
	stockRouter(t, h.server)
	h.agents("plan-4")
	var out, errOut string
	var code int
	h.server.NoWrites(t, apiserver.AccountUser(plan.Name, plan.Name), func() {
		out, errOut, code = h.sno("", "plan", "--modules", "ingress", "--timeout", "15s", "-o", "json")
	})
	var got struct {
		Groups []struct {
			Clusters []string
			Refused  string
			Changes  []struct{ Field, Desired, Verdict string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 6 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errOut)
	}
	var lines []string
	for _, g := range got.Groups {
		lines = append(lines, fmt.Sprint(g.Clusters, g.Refused, g.Changes))
	}
	want := []string{
		"[plan-3]the cluster does not report[]", "[plan-4]no plan after 15s: the Pod of the plan is ImagePullBackOff[]",
		`[plan-1 plan-2][{.spec.nodePlacement.nodeSelector.matchLabels["node-role.kubernetes.io/master"] "" set} ` +
			`{.spec.nodePlacement.tolerations [{"effect":"NoSchedule","key":"node-role.kubernetes.io/master","operator":"Exists"},{"effect":"NoSchedule","key":"node-r... (174 bytes, sha256 55ff5fa4) set} {.spec.replicas 1 set}]`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var left workv1.ManifestWorkList
	if err := h.admin.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%v, ManifestWorks are left: %v", err, left.Items)
	}

	h.refused("unknown module \"dns\"", "plan", "--modules", "dns")
	placement := &clusterv1beta1.Placement{}
	apiserver.NoError(t, h.admin.Get(t.Context(), client.ObjectKey{Namespace: h.config.Namespace, Name: rollout.SingleNodes}, placement))
	placement.Spec.Tolerations = nil
	apiserver.NoError(t, h.admin.Update(t.Context(), placement))
	h.refused("the Placement drops clusters that are away: add a toleration", "plan")
}

// The add-on manager deletes the add-on of a cluster with the label; the manager of the add-on ends it after the release.
func (h *hub) addonManager(stuck string) {
	events, err := h.admin.Watch(h.Context(), &clusterv1.ManagedClusterList{})
	apiserver.NoError(h.TB, err)
	h.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			cluster, is := event.Object.(*clusterv1.ManagedCluster)
			if !is || event.Type != watch.Modified {
				continue
			}
			if _, optedOut := cluster.Labels[fleet.OptOutLabel]; !optedOut {
				continue
			}
			addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Name, Name: fleet.AddOn}}
			err := h.admin.Delete(h.Context(), addon)
			if err == nil && cluster.Name != stuck {
				err = h.admin.Patch(h.Context(), addon, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			}
			if client.IgnoreNotFound(err) != nil {
				h.Error(err)
			}
		}
	}()
}

func TestOptOutAndUndo(t *testing.T) {
	var names []string
	for i := range 13 {
		names = append(names, fmt.Sprintf("many-%02d", i))
	}
	h := newHub(t, names...)
	h.away("many-11")
	const rows = `jsonpath={range .clusters[*]}{.cluster} {.outcome} {.message}|{end}`
	h.refused("13 clusters would be opted out; type 13, or add --yes", "opt-out", "-l", "region=many")
	h.addonManager("many-11")

	if out, errOut, code := h.sno("", "opt-out", "many-00", "many-12", "-o", rows); code != 0 || out != "many-00 opted out |many-12 opted out |" {
		t.Errorf("exit code %d, %s%s", code, out, errOut)
	}
	if out, errOut, code := h.sno("", "opt-out", "--undo", "many-01", "many-12", "-o", rows); code != 0 || out != "many-01 unchanged |many-12 brought back |" {
		t.Errorf("exit code %d, %s%s", code, out, errOut)
	}
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	apiserver.NoError(t, h.admin.Get(t.Context(), client.ObjectKey{Namespace: "many-02", Name: fleet.AddOn}, addon))
	addon.Finalizers = nil
	apiserver.NoError(t, h.admin.Update(t.Context(), addon))
	h.refused("cluster many-02: the add-on is not ready to release", "undo", "many-01", "many-02")
	apiserver.NoError(t, h.admin.Delete(t.Context(), addon))

	out, errOut, code := h.sno("13\n", "undo", "-l", "region=many", "--timeout", "5s", "-o", rows)
	if code != 4 || !strings.Contains(out, "many-01 released |") || !strings.Contains(out, "many-12 opted out it had no add-on|") ||
		!strings.Contains(out, "|many-11 not released Away, ManagedClusterLeaseUpdateStopped: A sentence|") || !strings.Contains(errOut, "1 clusters have not released") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	out, errOut, code = h.sno("", "undo", "many-11", "--timeout", "1s", "--force", "-o", rows)
	if code != 0 || !strings.HasPrefix(out, "many-11 given up Away") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	var left addonv1alpha1.ManagedClusterAddOnList
	if err := h.admin.List(t.Context(), &left, client.MatchingFields{"metadata.namespace": "many-11"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%v, left: %v", err, left.Items)
	}
}
