// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const release = "registry.example.com/release@sha256:0123"

// podman replaces podman by a script that counts its calls in a file, and then runs text.
func (m *machine) podman(t *testing.T, text string) (calls string) {
	t.Helper()
	bin := t.TempDir()
	m.Podman = filepath.Join(bin, "podman")
	calls = m.Podman + ".calls"
	fixture.Script(t, bin, "podman", `set -e
echo "$@" >>"`+calls+`"`+"\n"+text)
	m.edit(t, func(s *node.Settings) { s.Profile, s.ReleaseImage = "openshift", release })
	return calls
}

const (
	metadata   = `{"kind":"cincinnati-metadata-v0","version":"4.22.0"}`
	references = `{"spec":{"tags":[{"name":"hyperkube","annotations":{"io.openshift.build.versions":"kubernetes=1.35.2"},"from":{"name":"registry.example.com/hyperkube@sha256:0123"}}]}}`
	contents   = `case "$*" in *release-metadata) echo '` + metadata + `';; *image-references) echo '` + references + `';; *) exit 1;; esac`
)

func (m *machine) payload(ctx context.Context, limit time.Duration) error {
	return phase.Run(ctx, []phase.Phase{{Name: "release-payload", Limit: limit, Run: newLive(m.Options).payload}}, phase.Options{})
}

// The payload is read with the machine's pull secret, once, and only in profile openshift (U-INS-5).
func TestPayload(t *testing.T) {
	m := newMachine(t)
	calls := m.podman(t, contents)
	for range 2 {
		fixture.NoError(t, m.payload(t.Context(), time.Minute))
	}
	got := fixture.Must(os.ReadFile(calls))
	call := "run --quiet --rm --net=none --authfile " + filepath.Join(m.root, node.PullSecret) + " --entrypoint cat " + release + " /release-manifests/"
	fixture.Equal(t, "calls", call+"release-metadata\n"+call+"image-references\n", string(got))
	other := newMachine(t)
	calls = other.podman(t, contents)
	other.edit(t, func(s *node.Settings) { s.Profile = "kubernetes" })
	if err := other.payload(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	fixture.Absent(t, calls)
}

// An unavailable registry is retried until the limit, and a payload that cannot be used is an input error.
func TestPayloadUnavailable(t *testing.T) {
	m := newMachine(t)
	tries := filepath.Join(t.TempDir(), "tries")
	m.podman(t, `echo try >>"`+tries+`"
[ "$(wc -l <"`+tries+`")" -ge 3 ] || { echo "no such registry" >&2; exit 125; }
`+contents)
	fixture.NoError(t, m.payload(t.Context(), time.Minute))
	m = newMachine(t)
	m.podman(t, `echo "no such registry" >&2; exit 125`)
	err := m.payload(t.Context(), 300*time.Millisecond)
	if !errors.Is(err, phase.ErrLimit) || phase.ExitCode(err) != phase.ExitTimeout || !strings.Contains(err.Error(), "waiting for the release payload "+release) ||
		!strings.Contains(err.Error(), "exit status 125: no such registry") || !strings.Contains(m.output.String(), "no such registry") {
		t.Errorf("error %v, output %s", err, m.output.String())
	}
	m = newMachine(t)
	m.podman(t, "echo '{}'")
	fixture.Fails(t, "a payload without a version", m.payload(t.Context(), time.Minute), phase.ErrInput, "release-metadata has no version")
}

// outputs are files of the renders, by their path below the assets, and of create.
var outputs = map[string]string{
	"release-metadata": metadata, "image-references": references,
	"api-bootstrap/input/99_feature-gate.yaml":                                               "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster}\nspec: {}\nstatus: {featureGates: [{version: 4.22.0}]}\n",
	"auth-api-bootstrap/manifests/crd.yaml":                                                  "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: bs.a.io}\nstatus: {}\n",
	"config-bootstrap/config":                                                                "a",
	"cvo-bootstrap/bootstrap/bootstrap-pod.yaml":                                             "kind: Pod\n",
	"etcd-bootstrap/etc-kubernetes/manifests/etcd-member-pod.yaml":                           `{"spec":{"containers":[{"name":"etcd","env":[{"name":"ETCD_NAME","value":"etcd-master0"}],"command":["sh","exec etcd --initial-advertise-peer-urls=https://192.0.2.10:2380 \\"]}]}}`,
	"etcd-bootstrap/etc-kubernetes/static-pod-resources/etcd-member/ca.crt":                  "ca",
	"etcd-bootstrap/tls/etcd-client.key":                                                     "etcd's client",
	"kube-apiserver-bootstrap/config":                                                        "config of kube-apiserver",
	"kube-apiserver-bootstrap/bootstrap-manifests/kube-apiserver-pod.yaml":                   "kind: Pod # kube-apiserver\n",
	"kube-apiserver-bootstrap/manifests/secret.yaml":                                         "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: kube-system}\n---\napiVersion: operator.openshift.io/v1\nkind: Etcd\nmetadata: {name: cluster}\nspec: {}\nstatus: {latestAvailableRevision: 1}\n",
	"kube-controller-manager-bootstrap/config":                                               "config of kube-controller-manager",
	"kube-controller-manager-bootstrap/cpc-config":                                           "config of cluster-policy-controller",
	"kube-controller-manager-bootstrap/bootstrap-manifests/kube-controller-manager-pod.yaml": "kind: Pod # kube-controller-manager\n",
	"kube-scheduler-bootstrap/config":                                                        "config of kube-scheduler",
	"kube-scheduler-bootstrap/bootstrap-manifests/kube-scheduler-pod.yaml":                   "kind: Pod # kube-scheduler\n",
	"ingress-operator-manifests/ns.yaml":                                                     "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
	"node-tuning-bootstrap/.empty":                                                           "",
	"mco-bootstrap/bootstrap/machineconfigoperator-bootstrap-pod.yaml":                       "kind: Pod # machine-config\n",
	"mco-bootstrap/bootstrap/manifests/controllerconfig.yaml":                                "kind: ControllerConfig\n",
	"cco-bootstrap/bootstrap-manifests/cloud-credential-operator-pod.yaml":                   "kind: Pod # cloud-credential\n",
}

// rendersRelease has the renders of a release done already, as after a restart.
func (m *machine) rendersRelease(t *testing.T) {
	t.Helper()
	m.podman(t, "exit 1")
	for name, text := range outputs {
		fixture.Put(t, m.root, node.LiveDir+"/"+name, text)
	}
}

// The static pods are the release's own, with what they read, and only root reads that.
func TestRendered(t *testing.T) {
	m := newMachine(t)
	m.rendersRelease(t)
	for _, name := range []string{"kubeconfig-loopback", "kubeconfig-kubelet"} {
		fixture.Put(t, m.root, node.LiveDir+"/auth/"+name, name)
	}
	// As payload copies them.
	for from, to := range map[string]string{
		"kube-apiserver-bootstrap/bootstrap-manifests": "bootstrap-manifests", "kube-controller-manager-bootstrap/bootstrap-manifests": "bootstrap-manifests",
		"kube-scheduler-bootstrap/bootstrap-manifests": "bootstrap-manifests", "cvo-bootstrap/bootstrap": "bootstrap-manifests", "cco-bootstrap/bootstrap-manifests": "bootstrap-manifests",
		"kube-apiserver-bootstrap/manifests": "manifests", "api-bootstrap/input": "manifests", "auth-api-bootstrap/manifests": "manifests", "etcd-bootstrap/tls": "tls",
	} {
		for name, text := range outputs {
			if filepath.Dir(name) == from {
				fixture.Put(t, m.root, node.LiveDir+"/"+to+"/"+filepath.Base(name), text)
			}
		}
	}
	list := fixture.Must(rendered(newLive(m.Options).assets()))
	got := map[string]string{}
	for _, f := range list {
		if f.Mode != 0o600 || got[f.Path] != "" {
			t.Errorf("%s has mode %o, or is there twice", f.Path, f.Mode)
		}
		got[f.Path] = string(f.Content)
	}
	for name, want := range map[string]string{
		"files/etc/kubernetes/manifests/etcd-pod.yaml":                                 outputs["etcd-bootstrap/etc-kubernetes/manifests/etcd-member-pod.yaml"],
		"files/etc/kubernetes/static-pod-resources/etcd-member/ca.crt":                 "ca",
		"files/etc/kubernetes/manifests/kube-apiserver-pod.yaml":                       "kind: Pod # kube-apiserver\n",
		"files/etc/kubernetes/bootstrap-configs/kube-apiserver-config.yaml":            "config of kube-apiserver",
		"files/etc/kubernetes/bootstrap-configs/cluster-policy-controller-config.yaml": "config of cluster-policy-controller",
		"files/etc/kubernetes/bootstrap-secrets/etcd-client.key":                       "etcd's client",
		"auth/kubeconfig-localhost":                                                    "kubeconfig-loopback",
		"first/99_feature-gate-0.yaml":                                                 "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata:\n  name: cluster\nspec: {}\nstatus:\n  featureGates:\n  - version: 4.22.0\n",
		"first/status/99_feature-gate-0-0.yaml":                                        "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata:\n  name: cluster\nstatus:\n  featureGates:\n  - version: 4.22.0\n",
		"first/crd-0.yaml":                                                             "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: bs.a.io\nstatus: {}\n",
		"manifests/secret-0.yaml":                                                      "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: kube-system\n",
		"manifests/status/secret-1-0.yaml":                                             "apiVersion: operator.openshift.io/v1\nkind: Etcd\nmetadata:\n  name: cluster\nstatus:\n  latestAvailableRevision: 1\n",
	} {
		fixture.Equal(t, name, want, got[name])
	}
	if got["files/etc/kubernetes/manifests/bootstrap-pod.yaml"] != "" || got["first/status/crd-0-0.yaml"] != "" {
		t.Error("the cluster-version operator's pod is on the node, or a definition's status is applied")
	}
	pods, err := operatorPods(newLive(m.Options).assets())
	if err != nil || len(pods) != 2 {
		t.Errorf("%d pods of the live system, want those of the cluster-version operator and of cloud credentials: %v", len(pods), err)
	}
	server, err := configServer(newLive(m.Options).assets())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the server's certificate: %v, %v", server, err)
	}
}

// What the cluster-version operator needs is applied before it starts. It brings the definition of an operator's
// resource, for which the rest waits; a kind that nothing brings fails with its file (R-BIP-12, R-BIP-13).
func TestApplyRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	environment := apiserver.Start(t)
	m := newMachine(t)
	m.podman(t, "exit 1")
	fixture.Put(t, m.root, node.LiveDir+"/bootstrap-manifests/bootstrap-pod.yaml", "kind: Pod\n")
	fixture.Put(t, m.root, node.Rendered+"/"+controlplane.Kubeconfig, string(environment.KubeConfig))
	fixture.Put(t, m.root, firstManifests+"/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n")
	fixture.Put(t, m.root, otherManifests+"/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: first, name: a}\ndata: {from: release}\n")
	fixture.Put(t, m.root, otherManifests+"/operator.yaml", "apiVersion: operator.example.com/v1\nkind: Late\nmetadata: {name: cluster}\n")
	run := func(limit time.Duration) error {
		return phase.Run(t.Context(), []phase.Phase{{Name: "apply-manifests", Limit: limit, Run: newLive(m.Options).apply}}, phase.Options{})
	}
	fixture.Fails(t, "a kind without a definition", run(time.Second), apply.ErrFailed, "manifests/operator.yaml: Late cluster: ")
	fixture.Absent(t, filepath.Join(m.root, applied))
	pod := filepath.Join(m.root, node.ManifestDir, "bootstrap-pod.yaml")
	if err := os.Remove(pod); err != nil {
		t.Fatalf("the cluster-version operator was not started: %v", err)
	}
	// The cluster-version operator: it acts when its static pod is there, and the namespace must be there by then.
	client := kubernetes.NewForConfigOrDie(environment.Config)
	ended := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for _, err := os.Stat(pod); err != nil; _, err = os.Stat(pod) {
			<-ticker.C
		}
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "first", metav1.GetOptions{})
		late := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lates.operator.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "operator.example.com", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lates", Kind: "Late"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		}}
		if err == nil {
			_, err = apiextensions.NewForConfigOrDie(environment.Config).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), late, metav1.CreateOptions{})
		}
		ended <- err
	}()
	fixture.NoError(t, run(time.Minute))
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, err := client.CoreV1().ConfigMaps("first").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Data["from"] != "release" {
		t.Errorf("%v, %v", got.Data, err)
	}
	fixture.Equal(t, "", "2 objects and statuses\n", string(fixture.Must(os.ReadFile(filepath.Join(m.root, applied)))))
}
