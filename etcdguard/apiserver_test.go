package etcdguard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/patchtest"
)

// Most tests of this package need no API server. These do: whether an apply over the static manifest is accepted, whom the fields
// belong to then, and whether the decision comes to rest on what the API server made of it.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.ClusterVersions}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const user = "etcdguard"

// live carries decisions out on a real API server, one after the other, as a controller would, beside a stand-in for the
// cluster-version-operator.
type live struct {
	*testing.T
	server        *patchtest.APIServer
	client, admin client.WithWatch
	mode          configv1.TopologyMode
	n             int
	seen          []configv1.ComponentOverride
	// did are the actions of ours.
	did []etcdguard.Action
}

func newLive(t *testing.T) *live {
	t.Helper()
	server := shared.Server(t)
	l := &live{T: t, server: server, client: server.Client(t, user, "system:masters"), admin: server.Admin(t)}
	// The names are given, so one test leaves nothing to the next.
	l.must(client.IgnoreAlreadyExists(l.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: etcdguard.Namespace}})))
	for _, object := range []client.Object{&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &configv1.ClusterVersion{}} {
		object.SetName(etcdguard.GuardName)
		object.SetNamespace(etcdguard.Namespace)
		if _, ok := object.(*configv1.ClusterVersion); ok {
			object.SetName(etcdguard.ClusterVersionName)
			object.SetNamespace("")
		}
		l.must(client.IgnoreNotFound(l.admin.Delete(t.Context(), object)))
	}
	v := version()
	v.UID, v.ManagedFields, v.Generation, v.Status = "", nil, 0, configv1.ClusterVersionStatus{}
	v.Spec.ClusterID = "00000000-0000-0000-0000-000000000000"
	l.must(l.admin.Create(t.Context(), v, client.FieldOwner("installer")))
	l.versionOperator()
	return l
}

func (l *live) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// found reads an object, and tells whether there is one.
func (l *live) found(object client.Object, name string) bool {
	l.Helper()
	key := client.ObjectKey{Namespace: etcdguard.Namespace, Name: name}
	if _, ok := object.(*configv1.ClusterVersion); ok {
		key.Namespace = ""
	}
	err := l.admin.Get(l.Context(), key, object)
	l.must(client.IgnoreNotFound(err))
	return err == nil
}

func (l *live) inputs() etcdguard.Inputs {
	l.Helper()
	cluster := clusterOf(l.mode)
	in := etcdguard.Inputs{Cluster: &cluster, Nodes: nodesOf(l.mode, l.n), Members: membersOf(l.n, l.n), Image: "cli",
		ClientSecret: etcdguard.Present, CABundle: etcdguard.Present}
	if d := (&appsv1.Deployment{}); l.found(d, etcdguard.GuardName) {
		in.Deployment = d
	}
	if b := (&policyv1.PodDisruptionBudget{}); l.found(b, etcdguard.GuardName) {
		in.Budget = b
	}
	if v := (&configv1.ClusterVersion{}); l.found(v, etcdguard.ClusterVersionName) {
		in.ClusterVersion = v
	}
	return in
}

// act carries out one decision.
func (l *live) act() etcdguard.Action {
	l.Helper()
	in := l.inputs()
	d := etcdguard.Decide(in)
	switch d.Action {
	case etcdguard.Nothing:
		return d.Action
	case etcdguard.Claim:
		l.apply(in.ClusterVersion, d, d.ClusterVersion)
	case etcdguard.Unclaim:
		empty := &unstructured.Unstructured{}
		empty.SetAPIVersion("config.openshift.io/v1")
		empty.SetKind("ClusterVersion")
		empty.SetName(in.ClusterVersion.Name)
		l.must(l.client.Apply(l.Context(), client.ApplyConfigurationFromUnstructured(empty), client.FieldOwner(etcdguard.FieldOwner)))
	case etcdguard.ApplyDeployment:
		l.apply(in.Deployment, d, d.Deployment)
	case etcdguard.ApplyBudget:
		l.apply(in.Budget, d, d.Budget)
	case etcdguard.TidyDeployment:
		l.tidy(in.Deployment, d.Annotations)
	case etcdguard.TidyBudget:
		l.tidy(in.Budget, d.Annotations)
	case etcdguard.DeleteDeployment:
		l.remove(in.Deployment)
	case etcdguard.DeleteBudget:
		l.remove(in.Budget)
	case etcdguard.DisownDeployment:
		l.disown(in.Deployment, d.HandTo)
	case etcdguard.DisownBudget:
		l.disown(in.Budget, d.HandTo)
	}
	l.did = append(l.did, d.Action)
	return d.Action
}

// apply is bound to what was read, and takes fields from whom it may. Where there was nothing it takes nothing from anybody.
func (l *live) apply(object metav1.Object, d etcdguard.Decision, intent runtime.ApplyConfiguration) {
	l.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(intent)
	l.must(err)
	u := &unstructured.Unstructured{Object: body}
	for _, field := range d.Unset {
		l.must(unstructured.SetNestedField(u.Object, nil, strings.Split(strings.TrimPrefix(field, "."), ".")...))
	}
	options := []client.ApplyOption{client.FieldOwner(etcdguard.FieldOwner)}
	if !d.Create {
		u.SetUID(object.GetUID())
		u.SetResourceVersion(object.GetResourceVersion())
	}
	if !d.Create && len(d.TakeFrom) > 0 {
		options = append(options, client.ForceOwnership) // nobody else writes here, or it would be a list to compare
	}
	l.must(l.client.Apply(l.Context(), client.ApplyConfigurationFromUnstructured(u), options...))
}

func (l *live) tidy(object client.Object, keys []string) {
	l.Helper()
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[key] = nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(), "annotations": annotations}})
	l.must(err)
	l.must(l.client.Patch(l.Context(), object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(etcdguard.FieldOwner)))
}

func (l *live) remove(object client.Object) {
	l.Helper()
	l.must(l.client.Delete(l.Context(), object, client.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// disown gives what is ours to another manager, and touches nothing else.
func (l *live) disown(object client.Object, to string) {
	l.Helper()
	entries, err := etcdguard.Disowned(object.GetManagedFields(), to)
	l.must(err)
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
	})
	l.must(err)
	l.must(l.client.Patch(l.Context(), object, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(etcdguard.FieldOwner)))
}

// versionOperator is one round of the cluster-version-operator: it says which ClusterVersion it has seen, and writes both
// parts as its manifest has them, unless they are unmanaged.
func (l *live) versionOperator() {
	l.Helper()
	v := &configv1.ClusterVersion{}
	l.found(v, etcdguard.ClusterVersionName)
	l.seen = v.Spec.Overrides
	if v.Status.ObservedGeneration != v.Generation || len(v.Status.History) == 0 {
		v.Status = configv1.ClusterVersionStatus{ObservedGeneration: v.Generation, VersionHash: "hash",
			Desired: configv1.Release{Version: "4.7.0", Image: "release"}, AvailableUpdates: []configv1.Release{}}
		v.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.7.0", Image: "release",
			StartedTime: v.CreationTimestamp, CompletionTime: &v.CreationTimestamp}}
		l.must(l.admin.Status().Update(l.Context(), v, client.FieldOwner(cvo)))
	}
	owner := client.FieldOwner(cvo)
	if !slices.Contains(l.seen, guardEntry("Deployment", true)) {
		want, have := staticManifest(), &appsv1.Deployment{}
		if !l.found(have, etcdguard.GuardName) {
			l.must(l.admin.Create(l.Context(), want, owner))
		} else {
			before := have.DeepCopy()
			have.Spec, have.Annotations = want.Spec, want.Annotations
			l.must(l.admin.Update(l.Context(), have, owner, client.DryRunAll))
			if !equality.Semantic.DeepEqual(before.Spec, have.Spec) || !equality.Semantic.DeepEqual(before.Annotations, have.Annotations) {
				have.ResourceVersion = before.ResourceVersion
				l.must(l.admin.Update(l.Context(), have, owner))
			}
		}
	}
	if !slices.Contains(l.seen, guardEntry("PodDisruptionBudget", true)) {
		want, have := staticBudget(), &policyv1.PodDisruptionBudget{}
		want.UID, want.ManagedFields = "", nil
		if !l.found(have, etcdguard.GuardName) {
			l.must(l.admin.Create(l.Context(), want, owner))
		} else if !equality.Semantic.DeepEqual(have.Spec, want.Spec) || !equality.Semantic.DeepEqual(have.Annotations, want.Annotations) {
			have.Spec, have.Annotations = want.Spec, want.Annotations
			l.must(l.admin.Update(l.Context(), have, owner))
		}
	}
}

// staticManifest is the Deployment of a release before 4.8 (U-ETC-5), in the form that its successor kept (U-ETC-6).
func staticManifest() *appsv1.Deployment {
	labels := map[string]string{"k8s-app": "etcd-quorum-guard"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: etcdguard.Namespace, Name: etcdguard.GuardName,
		Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}}}
	d.Spec.Replicas = ptr.To[int32](3)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0))}}
	d.Spec.Template.Labels = map[string]string{"k8s-app": "etcd-quorum-guard", "name": "etcd-quorum-guard"}
	d.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-cluster-critical", TerminationGracePeriodSeconds: ptr.To[int64](3),
		NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Tolerations:  []corev1.Toleration{toleration("node-role.kubernetes.io/master", "NoSchedule"), toleration("node.kubernetes.io/not-ready", "NoExecute")},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   "kubernetes.io/hostname",
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k8s-app", Operator: "In", Values: []string{"etcd-quorum-guard"}}}},
		}}}},
		Containers: []corev1.Container{{
			Name: "guard", Image: "cli", Command: []string{"/bin/bash"}, Args: []string{"-c", "sleep infinity & wait"},
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "curl"}}},
				InitialDelaySeconds: 5, PeriodSeconds: 5, TimeoutSeconds: 3},
			VolumeMounts: []corev1.VolumeMount{{Name: "client", MountPath: "/mnt/client"}},
		}},
		Volumes: []corev1.Volume{{Name: "client", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "etcd-client"}}}},
	}
	return d
}

// rest lets both act until neither has anything to do, and returns what we did. At rest we write nothing.
func (l *live) rest() string {
	l.Helper()
	l.did = nil
	for turn := 0; ; turn++ {
		l.versionOperator()
		if l.act() == etcdguard.Nothing {
			break
		}
		if turn > 20 {
			l.Fatalf("it never comes to rest: %v", l.did)
		}
	}
	l.server.NoWrites(l.T, user, func() {
		for range 3 {
			l.versionOperator()
			if action := l.act(); action != etcdguard.Nothing {
				l.Errorf("at rest it does %s", action)
			}
		}
	})
	return fmt.Sprint(l.did)
}

// expect compares what is on the API server.
func (l *live) expect(replicas, maxUnavailable int, ours bool) {
	l.Helper()
	in := l.inputs()
	if in.Deployment == nil || in.Budget == nil {
		l.Fatalf("Deployment %t, budget %t", in.Deployment != nil, in.Budget != nil)
	}
	if got := int(*in.Deployment.Spec.Replicas); got != replicas {
		l.Errorf("%d replicas, want %d", got, replicas)
	}
	if b := in.Budget.Spec; b.MinAvailable != nil || b.MaxUnavailable.IntValue() != maxUnavailable {
		l.Errorf("minAvailable %v, maxUnavailable %v, want %d", b.MinAvailable, b.MaxUnavailable, maxUnavailable)
	}
	for _, object := range []metav1.Object{in.Deployment, in.Budget, in.ClusterVersion} {
		own, err := ownership.Applied(object, us, "")
		l.must(err)
		if owns := !own.Empty(); owns != ours {
			l.Errorf("%s is ours: %t, want %t", object.GetName(), owns, ours)
		}
	}
}

// The whole life of a cluster, on a real API server.
func TestOnAPIServer(t *testing.T) {
	l := newLive(t)
	l.mode, l.n = ha, 3
	if got := l.rest(); got != "[]" {
		t.Errorf("three nodes: %s", got)
	}
	l.expect(3, 1, false)

	l.n = 5
	if got, want := l.rest(), "[Claim ApplyDeployment ApplyBudget TidyDeployment TidyBudget]"; got != want {
		t.Errorf("five nodes: %s, want %s", got, want)
	}
	l.expect(5, 2, true)
	in := l.inputs()
	container := in.Deployment.Spec.Template.Spec.Containers[0]
	if len(in.Deployment.Spec.Template.Spec.Containers) != 1 || *container.SecurityContext.Privileged || container.ReadinessProbe.Exec.Command[0] != "curl" {
		t.Errorf("the guard that was taken over is %+v", container)
	}
	if len(in.ClusterVersion.Spec.Overrides) != 3 {
		t.Errorf("the overrides are %v", in.ClusterVersion.Spec.Overrides)
	}

	// Somebody replaces the budget's field by the other one.
	budget := in.Budget.DeepCopy()
	budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(1))
	l.must(l.admin.Update(t.Context(), budget, client.FieldOwner(cvo)))
	if got, want := l.rest(), "[ApplyBudget]"; got != want {
		t.Errorf("minAvailable: %s, want %s", got, want)
	}
	l.expect(5, 2, true)

	l.mode, l.n = arbiter, 3
	if got, want := l.rest(), "[ApplyDeployment ApplyBudget]"; got != want && got != "[ApplyBudget ApplyDeployment]" {
		t.Errorf("an arbiter: %s, want %s", got, want)
	}
	l.expect(3, 1, true)
	if pod := l.inputs().Deployment.Spec.Template.Spec; !chooses(t, pod, arbiterNode("a")) || !chooses(t, pod, master("m")) || chooses(t, pod, worker("w")) {
		t.Errorf("selector %v, affinity %v", pod.NodeSelector, pod.Affinity.NodeAffinity)
	}

	l.mode = ha
	if got, want := l.rest(), "[ApplyDeployment DisownDeployment DisownBudget Unclaim]"; got != want {
		t.Errorf("three nodes again: %s, want %s", got, want)
	}
	l.expect(3, 1, false)

	l.mode, l.n = sr, 1
	if got, want := l.rest(), "[Claim DeleteBudget DeleteDeployment]"; got != want {
		t.Errorf("one node: %s, want %s", got, want)
	}
	if in := l.inputs(); in.Deployment != nil || in.Budget != nil {
		t.Error("something is left on one node")
	}

	l.mode = dual
	l.n = 2
	if got, want := l.rest(), "[ApplyBudget ApplyDeployment]"; got != want {
		t.Errorf("two nodes: %s, want %s", got, want)
	}
	l.expect(2, 1, true)
}

// A guard that this module made, and that nobody else ever owned, keeps its numbers when it is given back, and can be taken over
// again. With what patch/apply does elsewhere, an apply of nothing, it would lose them: this is why there is Disown.
func TestWhyDisown(t *testing.T) {
	l := newLive(t)
	l.mode, l.n = sr, 1
	l.rest()
	l.mode, l.n = dual, 2
	if got, want := l.rest(), "[ApplyBudget ApplyDeployment]"; got != want {
		t.Errorf("made: %s, want %s", got, want)
	}

	nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"name": etcdguard.GuardName, "namespace": etcdguard.Namespace}}}
	l.must(l.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(nothing), client.FieldOwner(us), client.DryRunAll))
	if _, found, _ := unstructured.NestedFieldNoCopy(nothing.Object, "spec", "maxUnavailable"); found {
		t.Error("an apply of nothing leaves the number, so Disown is not needed")
	}

	before := l.inputs()
	v := before.ClusterVersion.DeepCopy()
	v.Annotations = map[string]string{"sno.solonode.github.io/opt-out": "etcdguard"}
	l.must(l.admin.Update(t.Context(), v, client.FieldOwner(person)))
	for _, want := range []etcdguard.Action{etcdguard.DisownDeployment, etcdguard.DisownBudget} {
		if got := l.act(); got != want {
			t.Errorf("opted out: %s, want %s", got, want)
		}
	}
	after := l.inputs()
	if !equality.Semantic.DeepEqual(before.Deployment.Spec, after.Deployment.Spec) || !equality.Semantic.DeepEqual(before.Budget.Spec, after.Budget.Spec) {
		t.Errorf("disowned it is %+v, %+v", after.Deployment.Spec, after.Budget.Spec)
	}
	if got, want := l.rest(), "[Unclaim]"; got != want {
		t.Errorf("opted out: %s, want %s", got, want)
	}
	l.expect(3, 1, false)

	v = l.inputs().ClusterVersion
	v.Annotations = nil
	l.must(l.admin.Update(t.Context(), v, client.FieldOwner(person)))
	if got, want := l.rest(), "[Claim ApplyBudget ApplyDeployment TidyDeployment TidyBudget]"; got != want {
		t.Errorf("opted in: %s, want %s", got, want)
	}
	l.expect(2, 1, true)
}

// A write that was decided on something else than what is there is refused.
func TestStaleWritesAreRefused(t *testing.T) {
	l := newLive(t)
	l.mode, l.n = ha, 5
	l.act()
	l.versionOperator()
	in := l.inputs()
	changed := in.Deployment.DeepCopy()
	changed.Annotations["somebody"] = "else"
	l.must(l.admin.Update(t.Context(), changed, client.FieldOwner(person)))
	d := etcdguard.Decide(in)
	if d.Action != etcdguard.ApplyDeployment {
		t.Fatal(d.Action)
	}
	d.Deployment.WithUID(in.Deployment.UID).WithResourceVersion(in.Deployment.ResourceVersion)
	err := l.client.Apply(context.WithoutCancel(t.Context()), d.Deployment, client.FieldOwner(us), client.ForceOwnership)
	if !apierrors.IsConflict(err) {
		t.Errorf("applying to what has changed: %v", err)
	}
	err = l.client.Delete(t.Context(), in.Deployment, client.Preconditions{ResourceVersion: ptr.To(in.Deployment.ResourceVersion)})
	if !apierrors.IsConflict(err) {
		t.Errorf("deleting what has changed: %v", err)
	}
}
