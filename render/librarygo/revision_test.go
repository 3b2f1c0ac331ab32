// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

func revision() loop.Step {
	return loop.Once(librarygo.Revision("kube-apiserver: revision", operator, namespace,
		[]staticpods.Resource{{Name: "pod"}, {Name: "cloud-config", Optional: true}}, []staticpods.Resource{{Name: "key"}, {Name: "webhook", Optional: true}}))
}

func latest(t *testing.T, s *store.Store) int32 {
	t.Helper()
	number, err := librarygo.LatestRevision(t.Context(), sessionOf(s), operator)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func TestRevision(t *testing.T) {
	s := newStore(t, configMap("pod", map[string]string{"pod.yaml": "1"}), secret("key", map[string][]byte{"k": []byte("v")}))
	if got := latest(t, s); got != 0 {
		t.Errorf("before the first run the revision is %d", got)
	}
	fails(t, run(t, s, loop.Once(librarygo.NodeStatus("status", operator, "a"))), `"status"`, "kubeapiservers cluster", librarygo.ErrNoRevision.Error())
	must(t, s, revision())
	check := func(number int32, wantMaps, wantSecrets []string) {
		t.Helper()
		if got := latest(t, s); got != number {
			t.Errorf("the revision is %d, want %d", got, number)
		}
		if diff := cmp.Diff(wantMaps, slices.Sorted(maps.Keys(configMaps(t, s, namespace)))); diff != "" {
			t.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(wantSecrets, slices.Sorted(maps.Keys(secrets(t, s, namespace)))); diff != "" {
			t.Errorf("Secrets (-want +got):\n%s", diff)
		}
	}
	check(1, []string{"pod", "pod-1", "revision-status-1"}, []string{"key", "key-1"})
	if must(t, s, revision()) {
		t.Error("a second run wrote something")
	}

	write(t, s, configMap("pod", map[string]string{"pod.yaml": "2"}), secret("webhook", map[string][]byte{"k": []byte("v")}))
	must(t, s, revision())
	check(2, []string{"pod", "pod-1", "pod-2", "revision-status-1", "revision-status-2"}, []string{"key", "key-1", "key-2", "webhook", "webhook-2"})
	copies := configMaps(t, s, namespace)
	if copies["pod-1"].Data["pod.yaml"] != "1" || copies["pod-2"].Data["pod.yaml"] != "2" {
		t.Errorf("the copies have %v and %v", copies["pod-1"].Data, copies["pod-2"].Data)
	}
	if copies["revision-status-2"].Annotations["operator.openshift.io/revision-ready"] != "true" || copies["revision-status-2"].Data["revision"] != "2" {
		t.Errorf("the status of the revision is %v, %v", copies["revision-status-2"].Annotations, copies["revision-status-2"].Data)
	}
	const label = "operator.openshift.io/controller-instance-name"
	for _, name := range []string{"pod-2", "revision-status-2"} {
		value := copies[name].Labels[label]
		if value != "kube-apiserver-RevisionController" || len(validation.IsValidLabelValue(value)) > 0 {
			t.Errorf("%s has the label %q", name, value)
		}
	}
	if owners := copies["pod-2"].OwnerReferences; len(owners) != 1 || owners[0].UID != copies["revision-status-2"].UID {
		t.Errorf("the copy is owned by %v", owners)
	}
}

func TestRevisionLabels(t *testing.T) {
	for operator, want := range map[librarygo.Operator]string{
		librarygo.Etcd: "etcd-RevisionController", librarygo.KubeControllerManager: "kube-controller-manager-RevisionController", librarygo.KubeScheduler: "kube-scheduler-RevisionController",
	} {
		s := fixture.Store(t, operator.Resource(), configMap("pod", map[string]string{"pod.yaml": "1"}))
		must(t, s, loop.Once(librarygo.Revision("revision", operator, namespace, []staticpods.Resource{{Name: "pod"}}, nil)))
		if got := configMaps(t, s, namespace)["pod-1"].Labels["operator.openshift.io/controller-instance-name"]; got != want {
			t.Errorf("%s: got %q, want %q", operator, got, want)
		}
	}
}

func TestRevisionNeedsItsObjects(t *testing.T) {
	for name, s := range map[string]*store.Store{
		`configmaps "pod" not found`: newStore(t, secret("key", nil)),
		`secrets "key" not found`:    newStore(t, configMap("pod", nil)),
	} {
		fails(t, run(t, s, revision()), `"kube-apiserver: revision"`, name)
		if got := latest(t, s); got != 0 {
			t.Errorf("%s: the revision is %d", name, got)
		}
	}
}

func TestNodeStatus(t *testing.T) {
	s := newStore(t, configMap("pod", map[string]string{"pod.yaml": "1"}), secret("key", nil))
	status := func(nodes ...string) loop.Step { return loop.Once(librarygo.NodeStatus("status", operator, nodes...)) }
	nodes := func() []operatorv1.NodeStatus {
		for _, found := range byName[*operatorv1.KubeAPIServer](t, s, "") {
			return found.Status.NodeStatuses
		}
		return nil
	}
	must(t, s, revision(), status("a", "b"))
	if diff := cmp.Diff([]operatorv1.NodeStatus{{NodeName: "a", CurrentRevision: 1}, {NodeName: "b", CurrentRevision: 1}}, nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if must(t, s, revision(), status("a", "b")) {
		t.Error("a second run wrote something")
	}
	write(t, s, configMap("pod", map[string]string{"pod.yaml": "2"}))
	must(t, s, revision(), status("b"))
	if diff := cmp.Diff([]operatorv1.NodeStatus{{NodeName: "b", CurrentRevision: 2}}, nodes()); diff != "" {
		t.Errorf("nodes later (-want +got):\n%s", diff)
	}
}

func TestLatestRevisionWithoutOperator(t *testing.T) {
	s := fixture.Store(t)
	if _, err := librarygo.LatestRevision(t.Context(), s.Session("test"), operator); err == nil {
		t.Error("no error without an operator")
	}
	if err := run(t, s, loop.Once(librarygo.NodeStatus("status", operator, "a"))); errors.Is(err, librarygo.ErrNoRevision) || err == nil {
		t.Errorf("got %v", err)
	}
}
