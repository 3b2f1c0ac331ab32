// SPDX-License-Identifier: Apache-2.0

package stable_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/stable"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

// shared serves no MachineConfigPool.
var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.ClusterVersions, crds.ClusterOperators}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// objects are stable, but for worker-2.
const objects = `
- {apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: 6ba7b810-9dad-41d1-80b4-00c04fd430c8},
   status: {observedGeneration: 1, availableUpdates: null, versionHash: hash, desired: {version: 4.20.1, image: example.com/release},
     history: [{state: Completed, version: 4.20.1, image: example.com/release, startedTime: "2026-11-01T12:00:00Z",
       completionTime: "2026-11-01T12:00:00Z", verified: false}],
     conditions: [{type: Available, status: "True", reason: AsExpected, lastTransitionTime: "2026-11-01T12:00:00Z"},
       {type: Progressing, status: "False", reason: AsExpected, lastTransitionTime: "2026-11-01T12:00:00Z"}]}}
- {apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: console}, spec: {},
   status: {versions: [{name: operator, version: 4.20.1}],
     conditions: [{type: Available, status: "True", reason: AsExpected, lastTransitionTime: "2026-11-01T12:00:00Z"},
       {type: Progressing, status: "False", reason: AsExpected, lastTransitionTime: "2026-11-01T12:00:00Z"},
       {type: Degraded, status: "False", reason: AsExpected, lastTransitionTime: "2026-11-01T12:00:00Z"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: sno}, status: {conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: worker-1}, status: {conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: worker-2}, status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady}]}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: console, namespace: openshift-console},
   spec: {replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}},
   status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}
- {apiVersion: v1, kind: Pod, metadata: {name: kube-apiserver-sno, namespace: openshift-kube-apiserver, labels: {app: openshift-kube-apiserver}},
   spec: {nodeName: sno, containers: [{name: x, image: x}]},
   status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: x, image: x, imageID: x, ready: true, restartCount: 1}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: installer-2-sno, namespace: openshift-kube-apiserver},
   spec: {nodeName: sno, containers: [{name: x, image: x}]}, status: {phase: Succeeded}}
`

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
	var all []unstructured.Unstructured
	apiserver.NoError(t, yaml.Unmarshal([]byte(objects), &all))
	for _, object := range all {
		status := object.Object["status"]
		apiserver.NoError(t, admin.Create(t.Context(), &object))
		object.Object["status"] = status
		apiserver.NoError(t, admin.Status().Update(t.Context(), &object))
	}
	worker, before := &corev1.Node{}, ""
	for _, step := range []struct {
		change   func()
		unstable string
		changed  bool
	}{
		{func() {}, "Node worker-2: Ready=False (KubeletNotReady)", true},
		{func() { worker.Status.Conditions[0].Status = corev1.ConditionTrue }, "", true},
		{func() {}, "", false},
		{func() { worker.Status.NodeInfo.BootID = "b" }, "", true},
	} {
		apiserver.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: "worker-2"}, worker))
		step.change()
		apiserver.NoError(t, admin.Status().Update(t.Context(), worker))
		report := stable.Check(t.Context(), pagesOfTwo{admin})
		var got []string
		for _, c := range report.Unstable {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(step.unstable, strings.Join(got, "\n")); diff != "" || len(report.Unreadable) > 0 {
			t.Errorf("unknown %v (-want +got):\n%s", report.Unreadable, diff)
		}
		now := report.Fingerprints["Node worker-2"]
		if changed := now != before; changed != step.changed {
			t.Errorf("the fingerprint of worker-2 changed: %t, want %t", changed, step.changed)
		}
		before = now
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
	want := []string{"ClusterVersion", "ClusterOperator", "Node", "CertificateSigningRequest", "Deployment", "DaemonSet", "StatefulSet", "Pod"}
	for text, report := range map[string]stable.Report{
		"cannot list resource": stable.Check(t.Context(), server.Client(t, "nobody-in-particular")), "context canceled": stable.Check(ended, server.Admin(t)),
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
