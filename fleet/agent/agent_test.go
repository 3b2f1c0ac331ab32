// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	framework "open-cluster-management.io/addon-framework/pkg/agent"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/internal/workagent"
)

var (
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	config = configuration.Configuration{
		Modules: []string{"ingress", "machineconfig"}, Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1",
		DrainPolicy: "workers", Placement: "topology", Manifests: "this",
	}
)

// hub is what an agent reads.
type hub struct {
	config     *addonv1alpha1.AddOnDeploymentConfig
	works      []*workv1.ManifestWork
	selected   bool
	hash       string
	installing *feedback.Installing
	cluster    *clusterv1.ManagedCluster
	addon      *addonv1alpha1.ManagedClusterAddOn
}

func newHub(c configuration.Configuration) *hub {
	h := &hub{config: c.Object("ns", "sno"), selected: true, hash: "this", cluster: &clusterv1.ManagedCluster{}, addon: &addonv1alpha1.ManagedClusterAddOn{}}
	h.cluster.Name, h.addon.Namespace, h.addon.Name = "east-1", "east-1", fleet.AddOn
	h.cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: "SingleReplica"}}
	h.addon.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
		DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: h.config.Name}},
	}}
	return h
}

var errNotFound = errors.New("not found")

func (h *hub) agent() *agent.Agent {
	return &agent.Agent{
		Hash: h.hash,
		Configuration: func(namespace, name string) (*addonv1alpha1.AddOnDeploymentConfig, error) {
			if namespace+"/"+name != h.config.Namespace+"/"+h.config.Name {
				return nil, errNotFound
			}
			return h.config, nil
		},
		Works:      func(string) []*workv1.ManifestWork { return h.works },
		Installing: func(string) *feedback.Installing { return h.installing },
		Selected:   func(string) (bool, error) { return h.selected, nil },
		Now:        func() time.Time { return now },
	}
}

// deleted deletes the add-on before now.
func (h *hub) deleted(before time.Duration, selected bool) *hub {
	at := metav1.NewTime(now.Add(-before))
	h.addon.DeletionTimestamp, h.selected = &at, selected
	return h
}

func (h *hub) manifests(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := h.agent().Manifests(h.cluster, h.addon)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		key := strings.TrimPrefix(u.GetNamespace()+"/", "/") + u.GetKind() + "/" + u.GetName()
		if all[key] != nil || u.GetAPIVersion() == "" {
			t.Errorf("%s is there twice, or has no version", key)
		}
		all[key] = u
	}
	return all
}

func names(all map[string]*unstructured.Unstructured) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// install makes the manifests those that the cluster has.
func (h *hub) install(t *testing.T) {
	t.Helper()
	work := &workv1.ManifestWork{}
	for _, o := range h.manifests(t) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "Job" {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
		}
	}
	h.works = []*workv1.ManifestWork{work}
}

func TestManifests(t *testing.T) {
	h := newHub(config)
	all := h.manifests(t)
	for _, want := range strings.Fields("sno-system/Deployment/sno-ingress-controller Infrastructure/cluster openshift-ingress-operator/IngressController/default " +
		"sno-system/Job/sno-release-ingress MachineConfigPool/worker MachineConfiguration/cluster Namespace/sno-system") {
		if all[want] == nil {
			t.Errorf("%s is missing in %s", want, names(all))
		}
	}
	container := func(object *unstructured.Unstructured) map[string]any {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)
	}
	deployment := all["sno-system/Deployment/sno-machineconfig-controller"]
	if got := fmt.Sprint(container(deployment)["image"], " ", container(deployment)["args"]); !strings.HasPrefix(got, "registry.example.com/machineconfig-controller:v1 [") ||
		!strings.HasSuffix(got, " --drain-policy=workers]") || deployment.GetAnnotations()[fleet.ConfigurationAnnotation] != "ns/"+h.config.Name {
		t.Errorf("the controller runs %s, of %v", got, deployment.GetAnnotations())
	}
	job := all["sno-system/Job/sno-release-machineconfig"]
	account, _, _ := unstructured.NestedString(job.Object, "spec", "template", "spec", "serviceAccountName")
	got := fmt.Sprint(container(job)["image"], container(job)["args"], " as ", account, container(job)["livenessProbe"])
	if want := "registry.example.com/kubectl-sno:v1[release machineconfig] as sno-machineconfig-controller<nil>"; got != want {
		t.Errorf("the Job runs %s, want %s", got, want)
	}
	if _, hook := job.GetAnnotations()[addonv1alpha1.AddonPreDeleteHookAnnotationKey]; !hook {
		t.Error("the Job would run at once")
	}
}

// reported returns a ManifestWork that reports a topology with two workers.
func reported(t *testing.T) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{}
	objects, options := feedback.Topology()
	objects[0].Object["status"] = map[string]any{"infrastructureTopology": "HighlyAvailable"}
	objects[1].Object["status"] = map[string]any{"machineCount": int64(2)}
	for i := range objects {
		m, err := workagent.Report(options[i], objects[i])
		if err != nil {
			t.Fatal(err)
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, m)
	}
	return work
}

// A dry run puts nothing on a spoke but our claims.
func TestDryRun(t *testing.T) {
	dry := config
	dry.DryRun = true
	h := newHub(dry)
	h.works = []*workv1.ManifestWork{reported(t)}
	all := h.manifests(t)
	want := "ClusterClaim/" + fleet.ClaimInfrastructure + " ClusterClaim/" + fleet.ClaimWorkers + " Infrastructure/cluster MachineConfigPool/worker"
	if diff := cmp.Diff(want, names(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if value, _, _ := unstructured.NestedString(all["ClusterClaim/"+fleet.ClaimWorkers].Object, "spec", "value"); value != "2" {
		t.Errorf("workers are %q", value)
	}
}

// What is deployed comes from the configuration that the cluster has, whatever others there are.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hub)
		want   error
		text   string
	}{
		"no OpenShift": {func(h *hub) { h.cluster.Status.ClusterClaims = nil }, agent.ErrNotOpenShift, "ManagedCluster east-1 has no claim controlplanetopology.openshift.io"},
		"two configurations": {func(h *hub) {
			h.addon.Status.ConfigReferences = append(h.addon.Status.ConfigReferences, h.addon.Status.ConfigReferences...)
		}, configuration.ErrReference, "east-1"},
		"its turn":       {func(h *hub) { h.addon.Status.ConfigReferences = nil }, configuration.ErrReference, "has none"},
		"edited":         {func(h *hub) { h.config.Spec.CustomizedVariables[0].Value = "auth" }, configuration.ErrEdited, "ns/sno-"},
		"unknown module": {func(h *hub) { h.config.Spec.CustomizedVariables[0].Value = "registry" }, configuration.ErrInvalid, `"registry"`},
		"missing":        {func(h *hub) { h.config.Name = "other" }, errNotFound, "reading AddOnDeploymentConfig ns/sno-"},
		"other manifests": {func(h *hub) {
			other := config
			other.Manifests = "other"
			h.config = other.Object("ns", "sno")
			h.addon.Status.ConfigReferences[0].DesiredConfig.Name = h.config.Name
		}, agent.ErrManifests, "set Manifests to this, in an AddOnDeploymentConfig whose name ends in -" + config.Hash()},
		"deleted just now": {func(h *hub) { h.deleted(agent.DeletionDelay-time.Second, false) }, agent.ErrDeleting, "less than 30s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(config)
			c.change(h)
			objects, err := h.agent().Manifests(h.cluster, h.addon)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || objects != nil {
				t.Errorf("got %d objects and %v, want %v with %q", len(objects), err, c.want, c.text)
			}
		})
	}
}

func replicas(t *testing.T, h *hub) int64 {
	t.Helper()
	n, found, err := unstructured.NestedInt64(h.manifests(t)["sno-system/Deployment/sno-ingress-controller"].Object, "spec", "replicas")
	if err != nil || !found {
		t.Fatal(err)
	}
	return n
}

// Controllers stop before the fields are released. The add-on of a cluster that is still selected comes back, so nothing
// is released there.
func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		h    *hub
		want int64
	}{
		"not deleted":                {newHub(config), 1},
		"deleted":                    {newHub(config).deleted(agent.DeletionDelay, false), 0},
		"deleted and still selected": {newHub(config).deleted(agent.DeletionDelay, true), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replicas(t, c.h); got != c.want {
				t.Errorf("%d replicas, want %d", got, c.want)
			}
		})
	}
}

// Clusters have the parsed manifests in common, and what one of them changes stays its own.
func TestClustersDoNotShareManifests(t *testing.T) {
	before := newHub(config).manifests(t)
	newHub(config).deleted(agent.DeletionDelay, false).manifests(t)
	if diff := cmp.Diff(before, newHub(config).manifests(t)); diff != "" {
		t.Errorf("(-before +after another cluster):\n%s", diff)
	}
}

// Another version of the manager changes nothing that it has not been asked for by a configuration, but what the cluster
// itself has reported.
func TestOtherVersionKeeps(t *testing.T) {
	h := newHub(config)
	h.install(t)
	before := h.manifests(t)
	for _, m := range h.works[0].Spec.Workload.Manifests { // what an earlier version had
		copy(m.Raw, bytes.ReplaceAll(m.Raw, []byte(`"app.kubernetes.io/name"`), []byte(`"app.kubernetes.io/past"`)))
	}
	h.works = append(h.works, reported(t))
	h.hash = "next"
	kept := h.manifests(t)
	if labels := fmt.Sprint(kept["sno-system/Deployment/sno-ingress-controller"].Object); !strings.Contains(labels, "app.kubernetes.io/past") {
		t.Errorf("changed: %s", labels)
	}
	want := names(before) + " ClusterClaim/" + fleet.ClaimInfrastructure + " ClusterClaim/" + fleet.ClaimWorkers
	if diff := cmp.Diff(slices.Sorted(strings.FieldsSeq(want)), slices.Sorted(strings.FieldsSeq(names(kept)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// It releases what is there, although the add-on has no configuration any more.
	h.deleted(agent.DeletionDelay, false)
	h.addon.Status.ConfigReferences = nil
	if got := replicas(t, h); got != 0 {
		t.Errorf("%d replicas in a release", got)
	}
}

func TestHash(t *testing.T) {
	one, err := agent.Hash()
	two, again := agent.Hash()
	if err != nil || again != nil || one != two || len(one) != 10 {
		t.Errorf("%s, %v, %s, %v", one, err, two, again)
	}
}

// The options that keep the framework from deploying at once, from dropping our rules, and spokes from needing the hub (R-FLT-1).
func TestOptions(t *testing.T) {
	options := newHub(config).agent().GetAgentAddonOptions()
	if options.AddonName != fleet.AddOn || !options.ConfigCheckEnabled || options.Registration != nil {
		t.Errorf("got %+v", options)
	}
	configured := map[workv1.ResourceIdentifier]bool{}
	for _, c := range options.ManifestConfigs {
		configured[c.ResourceIdentifier] = true
	}
	if len(configured) != len(feedback.Modules())+3 || len(options.ManifestConfigs) != len(configured) {
		t.Errorf("%d manifest configs", len(options.ManifestConfigs))
	}
	for _, f := range options.HealthProber.WorkProber.ProbeFields {
		if configured[f.ResourceIdentifier] {
			t.Errorf("the framework would drop the condition rules of %v", f.ResourceIdentifier)
		}
	}
	before, after := newHub(config).cluster, newHub(config).cluster
	if options.AgentDeployTriggerClusterFilter(before, after) {
		t.Error("an unchanged cluster is deployed again")
	}
	after.Status.ClusterClaims[0].Value = "HighlyAvailable"
	if !options.AgentDeployTriggerClusterFilter(before, after) {
		t.Error("a changed claim is ignored")
	}
}

func TestHealth(t *testing.T) {
	h := newHub(config)
	check := func(results []framework.FieldResult) error {
		return h.agent().GetAgentAddonOptions().HealthProber.WorkProber.HealthChecker(results, h.cluster, nil)
	}
	result := func(module string, values ...string) framework.FieldResult {
		for _, m := range feedback.Modules() {
			if m.Name == module {
				r := framework.FieldResult{ResourceIdentifier: m.Resource}
				for i := 0; i < len(values); i += 2 {
					r.FeedbackResult.Values = append(r.FeedbackResult.Values, workv1.FeedbackValue{
						Name: values[i], Value: workv1.FieldValue{Type: workv1.String, String: &values[i+1]},
					})
				}
				return r
			}
		}
		t.Fatal(module)
		return framework.FieldResult{}
	}
	settled := result("auth", "inForce", "True", "inProgress", "False", "reason", "AsExpected")
	blocked := result("ingress", "inForce", "False", "inProgress", "False", "reason", "FieldOwnedByOther")
	if err := check([]framework.FieldResult{settled}); err != nil {
		t.Error(err)
	}
	if err := check([]framework.FieldResult{settled, blocked}); !errors.Is(err, agent.ErrNotSettled) || !strings.HasSuffix(err.Error(), ": ingress (FieldOwnedByOther)") {
		t.Errorf("got %v", err)
	}
	h.installing = &feedback.Installing{Phase: "post-reboot: phase operators (4 of 9)"}
	if err := check([]framework.FieldResult{settled}); !errors.Is(err, agent.ErrNotSettled) || !strings.Contains(err.Error(), "phase operators") {
		t.Errorf("got %v", err)
	}
}
