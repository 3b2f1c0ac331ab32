// SPDX-License-Identifier: Apache-2.0

package kindtarget

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
)

func TestSelect(t *testing.T) {
	all := []Experiment{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", OptIn: true}}
	for want, names := range map[string][]string{"": nil, "ac": {"c", "a"}, "abc": {"all"}, "d": {"d"}, "abcd": {"all", "d"}} {
		chosen, err := Select(all, names)
		got := ""
		for _, e := range chosen {
			got += e.Name
		}
		if err != nil || got != want {
			t.Errorf("%v: %q, %v", names, got, err)
		}
	}
	if _, err := Select(all, []string{"a", "e"}); !errors.Is(err, ErrExperiment) {
		t.Error(err)
	}
}

// A module whose controller has no image could not be deployed.
func TestEveryControllerHasAnImage(t *testing.T) {
	for _, module := range framework.AllModules() {
		if !slices.Contains(programs.Shipped(), module.Controller()) {
			t.Error(module)
		}
	}
}

// A real kustomize sets the overlay's image in config/all.
func TestOverlay(t *testing.T) {
	text, err := overlay("registry.invalid/sno/kubectl-sno:1")
	if err != nil {
		t.Fatal(err)
	}
	root, err := programs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	// As on a node, next to a copy of config/.
	for _, linked := range append([]string{"config"}, modulesWithConfig()...) {
		if err := os.Symlink(filepath.Join(root, linked), filepath.Join(folder, linked)); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(folder, "overlay")
	if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "kustomization.yaml"), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	objects, err := framework.RenderConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	var images []any
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, container := range containers {
			images = append(images, container.(map[string]any)["image"])
		}
	}
	if diff := cmp.Diff([]any{"registry.invalid/sno/kubectl-sno:1"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if _, err := overlay("no-tag"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func modulesWithConfig() []string {
	var all []string
	for _, module := range framework.AllModules() {
		all = append(all, string(module))
	}
	return all
}

func TestRefusal(t *testing.T) {
	const refused = `E1122 reflector.go:204] "Failed to watch" err="failed to list: nodes is forbidden: User \"system:serviceaccount:a:b\" cannot list resource"`
	for want, log := range map[string]string{
		"":      "I1122 starting\nI1122 an eviction that a budget does not allow is no refusal: it is forbidden by the budget\n",
		refused: "I1122 starting\n" + refused + "\nI1122 more\n",
	} {
		if got := refusal(log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func TestSetImage(t *testing.T) {
	deployment := func(image string, args ...any) *unstructured.Unstructured {
		container := map[string]any{"name": "controller", "image": image, "args": args}
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{container},
		}}}}}
	}
	got := deployment("ko://example.com/a", "--one")
	if err := setImage(got, "a:1", []string{"--two"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(deployment("a:1", "--one", "--two"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := setImage(got, "a:2", nil); !errors.Is(err, errPlaceholder) {
		t.Error(err)
	}
}

func TestPending(t *testing.T) {
	done := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	if got := pending(&done); got != "" {
		t.Error(got)
	}
	for name, change := range map[string]func(*appsv1.Deployment){
		"not seen":      func(d *appsv1.Deployment) { d.Generation = 3 },
		"an old pod":    func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
		"not available": func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
		"not new":       func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
	} {
		d := done
		change(&d)
		if pending(&d) == "" {
			t.Error(name)
		}
	}
}

func TestLeaderless(t *testing.T) {
	named := func(name string) corev1.Pod { return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	held := func(by *string) coordinationv1.Lease {
		return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: by}}
	}
	leases := []coordinationv1.Lease{held(nil), held(ptr.To("")), held(ptr.To("a-1_id")), held(ptr.To("b-12_id"))}
	if diff := cmp.Diff([]string{"b-1"}, leaderless([]corev1.Pod{named("a-1"), named("b-1")}, leases)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod that succeeded does not change; one that failed, or is neither ready nor unschedulable, does.
func TestMoves(t *testing.T) {
	const namespace = "openshift-console"
	status := func(phase corev1.PodPhase, conditions ...corev1.PodCondition) corev1.PodStatus {
		return corev1.PodStatus{Phase: phase, Conditions: conditions}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	notReady := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	unschedulable := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	for name, test := range map[string]struct {
		namespace string
		status    corev1.PodStatus
		want      bool
	}{
		"created":       {namespace, status(corev1.PodPending), true},
		"not ready":     {namespace, status(corev1.PodRunning, notReady), true},
		"controller":    {framework.SystemNamespace, status(corev1.PodPending), true},
		"ready":         {namespace, status(corev1.PodRunning, ready), false},
		"unschedulable": {namespace, status(corev1.PodPending, unschedulable), false},
		"installer":     {namespace, status(corev1.PodSucceeded), false},
		"failed":        {"openshift-kube-apiserver", status(corev1.PodFailed), true},
		"another's":     {"kube-system", status(corev1.PodPending), false},
	} {
		if got := moves(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace}, Status: test.status}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A failed installer counts as retried only if another of the same revision succeeded on the same node.
func TestRetried(t *testing.T) {
	pod := func(namespace, node string, revision types.UID, phase corev1.PodPhase) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		if revision != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", UID: revision}}
		}
		return p
	}
	failed := pod("a", "n", "2", corev1.PodFailed)
	for name, test := range map[string]struct {
		pod, other corev1.Pod
		want       bool
	}{
		"the retry succeeded":     {failed, pod("a", "n", "2", corev1.PodSucceeded), true},
		"the retry is running":    {failed, pod("a", "n", "2", corev1.PodRunning), false},
		"the retry failed too":    {failed, pod("a", "n", "2", corev1.PodFailed), false},
		"another revision":        {failed, pod("a", "n", "3", corev1.PodSucceeded), false},
		"another node":            {failed, pod("a", "m", "2", corev1.PodSucceeded), false},
		"another operator":        {failed, pod("b", "n", "2", corev1.PodSucceeded), false},
		"without an owner":        {pod("a", "n", "", corev1.PodFailed), pod("a", "n", "", corev1.PodSucceeded), false},
		"a pod that is not ready": {pod("a", "n", "2", corev1.PodRunning), pod("a", "n", "2", corev1.PodSucceeded), false},
	} {
		if got := retried(&test.pod, []corev1.Pod{test.pod, test.other}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
