// SPDX-License-Identifier: Apache-2.0

package stable

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var installed = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

// fixture is a stable single-node cluster with one object of each kind.
const fixture = `
- {apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: 6ba7b810-9dad-41d1-80b4-00c04fd430c8},
   status: {observedGeneration: 2, availableUpdates: null, versionHash: hash, desired: {version: 4.20.1, image: example.com/release},
     history: [{state: Completed, version: 4.20.1, image: example.com/release, startedTime: "2026-11-01T12:00:00Z",
       completionTime: "2026-11-01T12:00:00Z", verified: false}],
     conditions: [{type: Available, status: "True", reason: AsExpected}, {type: Progressing, status: "False", reason: AsExpected}]}}
- {apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: console}, spec: {},
   status: {versions: [{name: console, version: "1.2"}, {name: operator, version: 4.20.1}],
     conditions: [{type: Available, status: "True", reason: AsExpected}, {type: Progressing, status: "False", reason: AsExpected},
       {type: Degraded, status: "False", reason: AsExpected}]}}
- {apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: master}, spec: {configuration: {name: rendered-1}},
   status: {observedGeneration: 2, machineCount: 1, updatedMachineCount: 1,
     conditions: [{type: Updated, status: "True"}, {type: Updating, status: "False"}, {type: Degraded, status: "False"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: sno}, spec: {},
   status: {nodeInfo: {bootID: a}, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-1}, spec: {signerName: kubernetes.io/kubelet-serving},
   status: {certificate: c2lnbmVk, conditions: [{type: Approved, status: "True"}]}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: console, namespace: openshift-console},
   spec: {replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}},
   status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}
- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: dns-default, namespace: openshift-dns}, spec: {},
   status: {observedGeneration: 2, desiredNumberScheduled: 1, updatedNumberScheduled: 1, numberAvailable: 1}}
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: prometheus-k8s, namespace: openshift-monitoring}, spec: {replicas: 2},
   status: {observedGeneration: 2, currentRevision: b, updateRevision: b, availableReplicas: 2}}
- {apiVersion: v1, kind: Pod, metadata: {name: kube-apiserver-sno, namespace: openshift-kube-apiserver, labels: {app: openshift-kube-apiserver}},
   spec: {nodeName: sno, containers: [{name: x, image: x}]},
   status: {conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: x, restartCount: 1}, {name: z, restartCount: 2}]}}
`

type state struct {
	client.Reader
	objects map[string][]*unstructured.Unstructured
	errs    map[string]error
}

func (s *state) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	kind := list.GetObjectKind().GroupVersionKind().Kind
	item := strings.TrimSuffix(kind, "List")
	if err := s.errs[item]; err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "items": append([]*unstructured.Unstructured{}, s.objects[item]...)})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, list)
}

// after returns the stable cluster after edits, separated by semicolons. An edit is a kind and a state, or a field of
// its object and a value. Fields of a list are elements with that type or index.
func after(t *testing.T, edits string) *state {
	t.Helper()
	s := &state{objects: map[string][]*unstructured.Unstructured{}, errs: map[string]error{}}
	var all []unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(fixture), &all); err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		u.SetUID("1")
		u.SetGeneration(2)
		u.SetCreationTimestamp(metav1.NewTime(installed))
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			c.(map[string]any)["lastTransitionTime"] = installed.Format(time.RFC3339)
		}
		u.Object["status"].(map[string]any)["conditions"] = conditions
		s.objects[u.GetKind()] = []*unstructured.Unstructured{&u}
	}
	for edit := range strings.SplitSeq(edits, "; ") {
		kind, change, _ := strings.Cut(edit, " ")
		switch path, text, is := strings.Cut(change, "="); {
		case is:
			var value any
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				t.Fatal(err)
			}
			set(t, s.objects[kind][0].Object, strings.Split(path, "."), value)
		case change == "gone":
			delete(s.objects, kind)
		case change == "unserved":
			s.errs[kind] = &meta.NoKindMatchError{}
		case change == "unknown":
			s.errs[kind] = errors.New("connection refused")
		case strings.HasPrefix(change, "added"):
			added := s.objects[kind][0].DeepCopy()
			added.SetName(added.GetName() + "-2")
			if _, namespace, is := strings.Cut(change, " to "); is {
				added.SetNamespace(namespace)
			}
			s.objects[kind] = append(s.objects[kind], added)
		case strings.TrimSpace(change) != "":
			t.Fatalf("no edit: %s", edit)
		}
	}
	return s
}

func set(t *testing.T, in any, path []string, value any) {
	t.Helper()
	switch in := in.(type) {
	case map[string]any:
		if len(path) > 1 {
			if in[path[0]] == nil {
				in[path[0]] = map[string]any{}
			}
			set(t, in[path[0]], path[1:], value)
		} else if in[path[0]] = value; value == nil {
			delete(in, path[0])
		}
		return
	case []any:
		for i, element := range in {
			element := element.(map[string]any)
			switch {
			case element["type"] != path[0] && strconv.Itoa(i) != path[0]:
				continue
			case len(path) == 1:
				delete(element, "reason")
				maps.Copy(element, value.(map[string]any))
			default:
				set(t, element, path[1:], value)
			}
			return
		}
	}
	t.Fatalf("there is no %v in %v", path, in)
}

func TestCheck(t *testing.T) {
	const prefix = "machineconfiguration.openshift.io/"
	long := strings.Repeat("ä", maxMessage)
	for kind, of := range map[string]struct {
		object string
		// tests have edits of the object and the expected report.
		tests map[string][2]string
	}{
		"ClusterVersion": {" version", map[string][2]string{
			"at rest":      {"", ""},
			"not served":   {"unserved", ""},
			"not observed": {"metadata.generation=3", "the cluster-version-operator has not observed its latest change"},
			"progressing":  {`status.conditions.Progressing.status="True"`, "Progressing=True (AsExpected)"},
			"updating":     {"status.history.0.state=Partial", "the update to 4.20.1 is not complete"},
			"failing": {`status.conditions=[{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Failing, status: "True"}]`,
				"Failing=True"},
		}},
		"ClusterOperator": {" console", map[string][2]string{
			"unavailable":         {`status.conditions.Available.status="False"`, "Available=False (AsExpected)"},
			"progressing":         {`status.conditions.Progressing.status="True"`, "Progressing=True (AsExpected)"},
			"degraded":            {`status.conditions.Degraded.status="True"`, "Degraded=True (AsExpected)"},
			"long message":        {`status.conditions.Available={status: "False", message: ` + long + "ä}", "Available=False: " + long + " ..."},
			"message":             {`status.conditions.Available={status: "False", message: "A: one\nB: two"}`, "Available=False: A: one ..."},
			"blank lines":         {`status.conditions.Available={status: "False", message: "\n  A: one\n\n"}`, "Available=False: A: one"},
			"unknown":             {"status.conditions.Available.status=Unknown", "Available=Unknown (AsExpected)"},
			"without a condition": {"status.conditions.Degraded.type=X", "Degraded=Unknown"},
			"at another version":  {"status.versions.1.version=4.20.0", "it is at version 4.20.0, the desired version is 4.20.1"},
			"without a version":   {"status.versions.1.name=x", "it has reported no version yet"},
		}},
		"MachineConfigPool": {" master", map[string][2]string{
			"none":                    {"gone", ""},
			"updating":                {`status.conditions.Updating.status="True"; status.updatedMachineCount=0`, "0 of 1 nodes are updated"},
			"degraded":                {`status.conditions.Degraded={status: "True", message: Node sno is stuck}`, "Degraded=True: Node sno is stuck"},
			"not observed":            {"metadata.generation=3", "the machine-config-operator has not observed its latest change"},
			"not updated":             {`status.conditions.Updated.status="False"`, "Updated=False"},
			"paused before an update": {`status.conditions.Updated.status="False"; spec.paused=true`, "it is paused with an update pending (note)"},
			"paused in an update":     {`status.conditions.Updating.status="True"; spec.paused=true`, "1 of 1 nodes are updated"},
			"without conditions":      {"status.conditions=[]", "Updated=Unknown"},
		}},
		"Node": {" sno", map[string][2]string{
			"not ready": {"status.conditions.Ready={status: Unknown, reason: NodeStatusUnknown}", "Ready=Unknown (NodeStatusUnknown)"},
			"new":       {"status.conditions=[]", "Ready=Unknown"},
			"cordoned":  {"spec.unschedulable=true", "it is cordoned"},
			"drained":   {"metadata.annotations={" + prefix + "desiredDrain: drain-rendered-2}", "it is being drained"},
			"uncordon":  {"metadata.annotations={" + prefix + "desiredDrain: uncordon-rendered-2}", "it waits to be uncordoned"},
			"nonsense": {"metadata.annotations={" + prefix + "desiredDrain: explode-rendered-2}",
				"its request to the machine-config-operator cannot be parsed"},
			"new config": {"metadata.annotations={" + prefix + "currentConfig: rendered-1, " + prefix + "desiredConfig: rendered-2}",
				"its machine config is changing, which may restart it"},
		}},
		requestKind: {" csr-1", map[string][2]string{
			"pending":           {"status={}", "it is not approved; on a single node a person or an external tool must approve it"},
			"approved":          {"status.certificate=null", "it is approved and not signed yet"},
			"denied":            {"status.certificate=null; status.conditions.Approved.type=Denied", ""},
			"of another client": {"status={}; spec.signerName=example.com/clients", ""},
		}},
		"Deployment": {" openshift-console/console", map[string][2]string{
			"not observed":  {"metadata.generation=3", "its latest change is not observed yet"},
			"not updated":   {"status.updatedReplicas=0", "0 of 1 pods are updated"},
			"with old pods": {"status.replicas=2", "1 old pods still exist"},
			"unavailable":   {"status.availableReplicas=0", "0 of 1 pods are available"},
			"of a user":     {"status.availableReplicas=0; metadata.namespace=shop", ""},
		}},
		"DaemonSet": {" openshift-dns/dns-default", map[string][2]string{
			"not updated":     {"status.updatedNumberScheduled=0", "0 of 1 pods are updated"},
			"updated by hand": {"status.updatedNumberScheduled=0; spec.updateStrategy.type=OnDelete", ""},
			"unavailable":     {"status.numberAvailable=0", "0 of 1 pods are available"},
		}},
		"StatefulSet": {" openshift-monitoring/prometheus-k8s", map[string][2]string{
			"not updated":         {"status.currentRevision=a; status.updatedReplicas=1", "1 of 2 pods are updated"},
			"up to its partition": {"status.currentRevision=a; status.updatedReplicas=1; spec.updateStrategy.rollingUpdate.partition=1", ""},
			"updated by hand":     {"status.currentRevision=a; spec.updateStrategy.type=OnDelete", ""},
			"unavailable":         {"status.availableReplicas=1", "1 of 2 pods are available"},
		}},
		"Pod": {" openshift-kube-apiserver/kube-apiserver-sno", map[string][2]string{
			"not ready": {`status.conditions.Ready.status="False"`, "Ready=False"},
		}},
	} {
		for name, test := range of.tests {
			t.Run(kind+" "+name, func(t *testing.T) {
				testCheck(t, kind+" "+strings.ReplaceAll(test[0], "; ", "; "+kind+" "), kind+of.object, test[1])
			})
		}
	}
	for _, kind := range []string{"ClusterVersion", "ClusterOperator", "Node"} {
		testCheck(t, kind+" gone", kind, "there is none yet")
		testCheck(t, kind+" unknown", kind, "cannot be read: connection refused")
	}
}

func testCheck(t *testing.T, edits, object, want string) {
	t.Helper()
	report := Check(t.Context(), after(t, edits))
	var lines []string
	for _, note := range report.Notes {
		lines = append(lines, note+" (note)")
	}
	for _, c := range report.Unstable {
		lines = append(lines, c.String())
	}
	for _, u := range report.Unreadable {
		lines = append(lines, u.String())
	}
	if want != "" {
		want = object + ": " + want
	}
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", edits, diff)
	}
	if settled := len(lines) == len(report.Notes); report.IsStable() != settled {
		t.Errorf("%s: IsStable() = %t with %v", edits, !settled, lines)
	}
}
