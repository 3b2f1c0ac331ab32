// SPDX-License-Identifier: Apache-2.0

package allinone_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/rotate"

	"github.com/solonode/sno/install/allinone"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/controlplane/controlplanetest"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/join/jointest"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// An all-in-one node is installed although the run is interrupted, and its certificates are renewed on the disk and on
// the API server (R-AIO-2, R-AIO-3, R-AIO-5, R-AIO-7). The kubelet's requests are tested in package join.
func TestPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys, runs all phases several times, and starts an API server")
	}
	environment := apiserver.Start(t)
	client := kubernetes.NewForConfigOrDie(environment.Config)
	root := t.TempDir()
	config := fixture.Must(controlplanetest.ConfigFiles(t.Context(), installconfig.AllInOne, node.AllInOneSettings, node.AllInOneManifests))
	fixture.Must(rotate.WriteChanged(root, config))
	var units [][]string
	m := allinone.NewMachine(controlplane.Machine{Root: root, Output: io.Discard, Interval: 20 * time.Millisecond, Host: func() (controlplane.Host, error) {
		return controlplane.Host{Name: "Master0", Interfaces: []controlplane.Interface{{Name: "eno1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}, nil
	}, Systemctl: func(_ context.Context, arguments ...string) error {
		units = append(units, arguments)
		return nil
	}})
	var names []string
	for _, p := range append(allinone.Phases(m, hasAll), allinone.Rotate(m, allinone.Kubelet{})...) {
		names = append(names, p.Name)
	}
	fixture.Equal(t, "names in the status", []string{"preflight", "render", "static-pods", "api", "apply-manifests", "join", "finish", "rotate", "static-pods", "api", "apply-manifests", "kubelet", "join"}, names)
	run := func(list []phase.Phase, until string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		return phase.Run(ctx, list, phase.Options{Report: func(s phase.Status) {
			for _, p := range s.Phases {
				if p.Name == until && p.State == phase.Done {
					cancel()
				}
			}
		}})
	}
	for _, name := range []string{"render", "static-pods"} {
		if err := run(allinone.Phases(m, hasAll), name); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted after %s: %v", name, err)
		}
	}
	environmentFile := fixture.Must(os.ReadFile(filepath.Join(root, kubelet.EnvironmentFile)))
	fixture.Equal(t, "kubelet.env", "KUBELET_NODE_ARGS=--hostname-override=master0 --node-ip=192.0.2.10\n", string(environmentFile))
	for _, name := range []string{node.KubeletBootstrap, node.ManifestDir + "/etcd-pod.yaml", node.ManifestDir + "/kube-scheduler-pod.yaml"} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	kubeconfig := filepath.Join(root, node.AllInOneRendered, controlplane.Kubeconfig)
	fixture.NoError(t, os.WriteFile(kubeconfig, environment.KubeConfig, 0o600))
	ready := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master0"}}
	fixture.Must(client.CoreV1().Nodes().Create(t.Context(), ready, metav1.CreateOptions{}))
	if err := run(allinone.Phases(m, hasAll), "apply-manifests"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, node.AllInOneMarker)); err == nil {
		t.Error("the marker exists without a node")
	}
	short := allinone.Phases(m, hasAll)
	short[5].Limit = 100 * time.Millisecond
	if err := run(short, ""); !errors.Is(err, phase.ErrLimit) || !errors.Is(err, join.ErrNotJoined) {
		t.Fatalf("a node that is not Ready: %v", err)
	}
	fixture.Equal(t, "a kubelet without a certificate request", [][]string{{"restart", "kubelet.service"}}, units)
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	fixture.Must(client.CoreV1().Nodes().UpdateStatus(t.Context(), ready, metav1.UpdateOptions{}))
	jointest.Certificate(t, root, join.ServingCertificate, "master0", time.Now().Add(time.Hour))
	fixture.Put(t, root, node.AllInOneStatus, `{"command": "aiokube"}`)
	fixture.NoError(t, run(allinone.Phases(m, hasAll), ""))
	// Another machine reads that it is installed (R-BIP-3).
	status, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), monitor.Name, metav1.GetOptions{})
	if err != nil || !strings.Contains(status.Data["aiokube"], "aiokube") {
		t.Errorf("the status in the cluster: %v, %v", status, err)
	}
	if err := run(allinone.Phases(m, hasAll), ""); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "openshift-etcd", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.Discovery().ServerResourcesForGroupVersion("config.openshift.io/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("kinds for operators: %v", err)
	}

	before := expire(t, m)
	fixture.Put(t, root, kubelet.ServerCA, "old")
	// The API server does not answer once its own certificate has ended.
	fixture.Put(t, root, node.AllInOneRendered+"/"+controlplane.Kubeconfig, "")
	fixture.NoError(t, run(allinone.RotateBeforeKubelet(m), ""))
	after, err := os.ReadFile(filepath.Join(root, certificate))
	if err != nil || bytes.Equal(before, after) {
		t.Fatalf("a certificate that has ended was not renewed: %v", err)
	}
	if ca, err := os.ReadFile(filepath.Join(root, kubelet.ServerCA)); err != nil || !bytes.Contains(ca, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("the kubelet has no bundle: %v", err)
	}
	fixture.NoError(t, os.WriteFile(kubeconfig, environment.KubeConfig, 0o600))

	// The running kubelet starts the new static pods before it is restarted.
	fixture.Put(t, root, kubelet.ServerCA, "old")
	units = nil
	all := allinone.Rotate(m, allinone.Kubelet{HealthURL: kubeletHealth(t, &[]string{}), PodTimeout: time.Minute})
	all[4].Limit = 500 * time.Millisecond
	createMirrorPods(t, m, client, "0")
	if err := run(all, ""); !errors.Is(err, phase.ErrLimit) || !strings.Contains(err.Error(), "has not reported the pod as Ready") || len(units) > 0 {
		t.Errorf("error %v, systemctl calls %v", err, units)
	}
	createMirrorPods(t, m, client, "")
	all[4].Limit = time.Minute
	fixture.NoError(t, run(all, ""))
	fixture.Equal(t, "systemctl", [][]string{{"stop", "kubelet.service"}, {"start", "kubelet.service"}}, units)
	secret, err := client.CoreV1().Secrets("openshift-kube-apiserver").Get(t.Context(), "localhost-serving-cert-certkey", metav1.GetOptions{})
	if err != nil || !bytes.Equal(secret.Data[corev1.TLSCertKey], after) {
		t.Errorf("the API server and the disk have different certificates: %v", err)
	}
}

// createMirrorPods creates Ready mirror pods of the static pods, etcd's with another revision if one is given.
func createMirrorPods(t *testing.T, m *controlplane.Machine, client kubernetes.Interface, etcd string) {
	t.Helper()
	manifests, err := filepath.Glob(m.Path(node.ManifestDir + "/*.yaml"))
	if err != nil || len(manifests) != 4 {
		t.Fatalf("%v, %v", manifests, err)
	}
	for _, name := range manifests {
		text := fixture.Must(os.ReadFile(name))
		var pod corev1.Pod
		fixture.NoError(t, yaml.Unmarshal(text, &pod))
		pod.Name += "-master0"
		if etcd != "" && strings.HasPrefix(pod.Name, "etcd") {
			pod.Labels["revision"] = etcd
		}
		pods, force := client.CoreV1().Pods(pod.Namespace), int64(0)
		if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &force}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		created := fixture.Must(pods.Create(t.Context(), &pod, metav1.CreateOptions{}))
		created.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		fixture.Must(pods.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}))
	}
}

const certificate = node.ResourceDir + "/kube-apiserver-certs/secrets/localhost-serving-cert-certkey/tls.crt"

func expire(t *testing.T, m *controlplane.Machine) []byte {
	t.Helper()
	found, err := filepath.Glob(m.Path(m.Rendered + "/manifests/*_openshift-kube-apiserver_secret_localhost-serving-cert-certkey.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	text := fixture.Must(os.ReadFile(found[0]))
	const annotation = `(auth.openshift.io/certificate-not-after: ).*`
	text = regexp.MustCompile(annotation).ReplaceAll(text, []byte(`${1}"2020-01-01T00:00:00Z"`))
	fixture.NoError(t, os.WriteFile(found[0], text, 0o600))
	return fixture.Must(os.ReadFile(m.Path(certificate)))
}
