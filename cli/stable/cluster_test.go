// SPDX-License-Identifier: Apache-2.0

package stable

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared serves no MachineConfigPool.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.ClusterVersions, patchtest.ClusterOperators}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func put(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	status := object.Object["status"].(map[string]any)
	object.SetUID("")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, observes := status["observedGeneration"]; observes {
		status["observedGeneration"] = object.GetGeneration()
	}
	object.Object["status"] = status
	if err := c.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

type pagesOfTwo struct{ client.Reader }

func (p pagesOfTwo) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return p.Reader.List(ctx, list, append(options, client.Limit(2))...)
}

// A worker becomes ready, and then restarts between two checks. Lists have pages, and a kind is not served.
func TestOnRealServer(t *testing.T) {
	admin := shared.Server(t).Admin(t)
	for _, name := range []string{"openshift-console", "openshift-kube-apiserver"} {
		if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	installed := after(t, "")
	for _, kind := range []string{"ClusterVersion", "ClusterOperator", "Node", "Deployment", "Pod"} {
		put(t, admin, installed.objects[kind][0])
	}
	more := after(t, "Pod metadata.name=installer-2-sno; Pod metadata.labels={}; Pod status={phase: Succeeded}; Node metadata.name=worker-2; "+
		`Node status.conditions.Ready={status: "False", reason: KubeletNotReady}`)
	put(t, admin, more.objects["Pod"][0])
	put(t, admin, after(t, "Node metadata.name=worker-1").objects["Node"][0])
	put(t, admin, more.objects["Node"][0])

	worker := &corev1.Node{}
	var history history
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "Node worker-2: Ready=False (KubeletNotReady)"},
		{func() { worker.Status.Conditions[0].Status = corev1.ConditionTrue }, "Node worker-2: has changed"},
		{func() {}, ""},
		{func() { worker.Status.NodeInfo.BootID = "b" }, "Node worker-2: has changed"},
	} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: "worker-2"}, worker); err != nil {
			t.Fatal(err)
		}
		step.change()
		if err := admin.Status().Update(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		report := Check(t.Context(), pagesOfTwo{admin})
		_, changed := history.observe(&report, time.Now())
		var got []string
		for _, c := range report.Unstable {
			got = append(got, c.String())
		}
		if report.IsStable() {
			for _, object := range changed {
				got = append(got, object+": has changed")
			}
		}
		if diff := cmp.Diff(step.want, strings.Join(got, "\n")); diff != "" || len(report.Unreadable) > 0 {
			t.Errorf("unknown %v (-want +got):\n%s", report.Unreadable, diff)
		}
		if diff := cmp.Diff([]string{"MachineConfigPool"}, report.NotServed); diff != "" {
			t.Errorf("not served (-want +got):\n%s", diff)
		}
	}
}

// Kinds that are forbidden, or for which no answer arrived, are unreadable.
func TestUnreadable(t *testing.T) {
	server := shared.Server(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want := []string{"ClusterVersion", "ClusterOperator", "Node", requestKind, "Deployment", "DaemonSet", "StatefulSet", "Pod"}
	for text, report := range map[string]Report{
		"cannot list resource": Check(t.Context(), server.Client(t, "nobody-in-particular")), "context canceled": Check(ended, server.Admin(t)),
	} {
		var kinds []string
		for _, u := range report.Unreadable {
			if strings.Contains(u.Error, text) {
				kinds = append(kinds, u.Kind)
			}
		}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("unknown because %q (-want +got):\n%s\n%v", text, diff, report.Unreadable)
		}
	}
}
