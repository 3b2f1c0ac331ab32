// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

const (
	fakeSecret = "c2VjcmV0LW9mLXRoZS1jbHVzdGVy"
	token      = "eyJhbGciOiJSUzI1NiJ9." + fakeSecret + ".c2lnbmF0dXJl"
	configKind = "machineconfiguration.openshift.io/v1"
	// listed is a person's MachineConfig, rendered that of the nodes.
	listed, rendered = "50-secret", "rendered-master-1"
)

// secretAnnotations has also a public one.
var secretAnnotations = map[string]string{
	"example.com/token": fakeSecret, "kubectl.kubernetes.io/last-applied-configuration": fakeSecret, "kubectl.kubernetes.io/restartedAt": "yesterday",
}

func machineConfiguration(kind, name string, content map[string]any) client.Object {
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(configKind)
	object.SetKind(kind)
	object.SetName(name)
	object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": fakeSecret})
	if kind == "MachineConfigPool" {
		object.SetLabels(map[string]string{"pool": "control-plane"})
	}
	return object
}

func ignition(files map[string]string) map[string]any {
	var all []any
	for path, text := range files {
		source := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(text))
		all = append(all, map[string]any{"path": path, "contents": map[string]any{"source": source}})
	}
	return map[string]any{"spec": map[string]any{"config": map[string]any{"storage": map[string]any{"files": all}}, "kernelArguments": []any{fakeSecret}}}
}

// createSecrets creates objects with a secret wherever one is possible.
func createSecrets(t *testing.T, kube client.Client) {
	t.Helper()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: secretAnnotations}
	}
	labels := map[string]string{"app": "x"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: secretAnnotations}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "first", Image: "x", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: fakeSecret}}}},
		Containers: []corev1.Container{{
			Name: "main", Image: "x", Env: []corev1.EnvVar{{Name: "TOKEN", Value: fakeSecret}}, Command: []string{"/bin/sh", "-c", "login " + fakeSecret}, Args: []string{"--token=" + fakeSecret},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Port: intstr.FromInt32(80), HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: fakeSecret}},
			}}},
		}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"key": fakeSecret}}}}},
	}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	message := `failed to pull: {"auths":{"quay.io":{"auth":"` + fakeSecret + `"}}}, bearer ` + token + ", -----BEGIN RSA PRIVATE KEY-----\n" + fakeSecret + "\n-----END RSA PRIVATE KEY-----"
	var encoded []string
	for _, text := range []string{fakeSecret, token} {
		encoded = append(encoded, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	pod := &corev1.Pod{ObjectMeta: meta("openshift-ingress", "pod"), Spec: template.Spec}
	raw := runtime.RawExtension{Raw: []byte(`{"a":"` + fakeSecret + `"}`)}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-ingress"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-machine-config-operator"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-cluster-machine-approver"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-storage"}},
		// An add-on, which is highly available with any topology.
		&appsv1.Deployment{ObjectMeta: meta("openshift-storage", "add-on"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template, Replicas: ptr.To[int32](3)}},
		&corev1.Node{ObjectMeta: meta("", "node")}, pod,
		&operatorv1.Console{ObjectMeta: meta("", "cluster"), Spec: operatorv1.ConsoleSpec{OperatorSpec: operatorv1.OperatorSpec{ObservedConfig: raw, UnsupportedConfigOverrides: raw}}},
		&configv1.ClusterOperator{ObjectMeta: meta("", "machine-approver"), Status: configv1.ClusterOperatorStatus{Extension: raw}},
		&appsv1.Deployment{ObjectMeta: meta("openshift-ingress", "router-default"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template, Replicas: new(int32)}},
		&appsv1.Deployment{ObjectMeta: meta("openshift-machine-config-operator", "another"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template, Replicas: new(int32)}},
		machineConfiguration("ControllerConfig", "machine-config-controller", map[string]any{"spec": map[string]any{"additionalTrustBundle": fakeSecret}}),
		&appsv1.DaemonSet{ObjectMeta: meta("openshift-ingress", "set"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		&appsv1.StatefulSet{ObjectMeta: meta("openshift-ingress", "set"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, Replicas: new(int32)}},
		&corev1.Secret{ObjectMeta: meta("openshift-ingress", "pull-secret"), StringData: map[string]string{".dockerconfigjson": fakeSecret}},
		&corev1.ConfigMap{ObjectMeta: meta("openshift-cluster-machine-approver", "machine-approver-config"), Data: map[string]string{"config.yaml": "{}", "token": fakeSecret}},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "event"}, Message: message,
			InvolvedObject: corev1.ObjectReference{Namespace: "openshift-ingress"},
		},
		machineConfiguration("MachineConfig", listed, ignition(map[string]string{"/etc/token": strings.Join(encoded, " ")})),
		machineConfiguration("MachineConfig", rendered, ignition(map[string]string{
			"/var/lib/kubelet/config.json": fakeSecret, "/etc/kubernetes/kubelet.conf": "shutdownGracePeriod: 90s\nstaticPodURLHeader: {Authorization: [" + fakeSecret + "]}\n",
		})),
		machineConfiguration("MachineConfigPool", "master", map[string]any{"status": map[string]any{"configuration": map[string]any{"name": rendered}}}),
		machineConfiguration("KubeletConfig", "graceful", map[string]any{"spec": map[string]any{
			"kubeletConfig": map[string]any{"shutdownGracePeriod": "90s"}, "machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pool": "control-plane"}},
		}}),
	} {
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: fakeSecret}}}}
	if err := kube.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	createInfrastructure(t, "")
}

// TestSecrets: a run reads no secret that no check needs, and its artifacts contain none.
func TestSecrets(t *testing.T) {
	createSecrets(t, admin(t))

	var mu sync.Mutex
	var read []string
	run := func(selection runner.Selection) (report.Report, string) {
		read = nil
		var out bytes.Buffer
		target := cluster.Target{Config: rest.CopyConfig(server.Config), Times: cluster.SimulatedTimes(), Progress: &out}
		target.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return observed(func(request *http.Request) (*http.Response, error) {
				mu.Lock()
				read = append(read, request.URL.Path)
				mu.Unlock()
				return next.RoundTrip(request)
			})
		})
		selection.Tiers = static
		run, err := runner.New(t.Context(), target, selection)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = run.Close(t.Context()) }()
		if err := run.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, check := range catalogue.All() {
			if _, err := run.Result(t.Context(), check.ID); err != nil {
				t.Fatal(err)
			}
		}
		folder := t.TempDir()
		if err := run.Collect(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		done := run.Report()
		done.Tool = "test"
		if err := report.WriteYAML(&text, done); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "report.yaml"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		files := 0
		err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			for _, secret := range []string{fakeSecret, base64.StdEncoding.EncodeToString([]byte(fakeSecret))} {
				if at := bytes.Index(text, []byte(secret)); at >= 0 {
					t.Errorf("%s contains a secret: ...%s", path, text[max(0, at-200):at])
				}
			}
			return err
		})
		if text, err := os.ReadFile(filepath.Join(folder, "objects.yaml")); err != nil || !bytes.Contains(text, []byte("yesterday")) || !bytes.Contains(text, []byte("(withheld)")) {
			t.Errorf("public annotations are missing, or nothing is withheld: %v\n%s", err, text)
		}
		if err != nil || files < 4 {
			t.Errorf("%d files: %v\n%s", files, err, out.String())
		}
		return done, out.String()
	}

	done, out := run(runner.Selection{})
	if strings.Contains(out, fakeSecret) {
		t.Error(out)
	}
	for _, part := range []string{
		"Namespaces that count as OpenShift's own: openshift-ingress, openshift-machine-config-operator\n",
		"Not checked, because they are not part of the release payload (--payload-namespaces): openshift-storage\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in:\n%s", part, out)
		}
	}
	for _, result := range done.Results {
		for _, e := range result.Evidence {
			if strings.Contains(e.Object, "openshift-storage") {
				t.Errorf("%s checks an add-on: %+v", result.ID, e)
			}
		}
		if result.ID == "SNO-MCO-003" && result.Status != report.Passed {
			t.Errorf("%s is %s: %s %+v", result.ID, result.Status, result.Reason, result.Evidence)
		}
	}
	for _, path := range read {
		if strings.Contains(path, "/secrets") || strings.Contains(path, "/machineconfigs") && !strings.HasSuffix(path, "/machineconfigs/"+rendered) {
			t.Errorf("%s was read", path)
		}
	}
	run(runner.Selection{IDs: []string{"SNO-TOP-002", "SNO-TOP-005"}})
	if slices.ContainsFunc(read, func(path string) bool { return strings.Contains(path, "/machineconfigs") }) {
		t.Errorf("a MachineConfig was read, although no check needs it: %v", read)
	}
}

type observed func(*http.Request) (*http.Response, error)

func (o observed) RoundTrip(request *http.Request) (*http.Response, error) { return o(request) }
