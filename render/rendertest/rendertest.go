// SPDX-License-Identifier: Apache-2.0

// Package rendertest has common test helpers: a small cluster, runs of loops, golden files, and a real API server.
package rendertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// Settings returns the settings of a cluster with nodes cp-1, cp-2, ... of these addresses.
func Settings(profile inputs.Profile, addresses ...string) *inputs.Settings {
	named := metav1.ObjectMeta{Name: "cluster"}
	mode := configv1.HighlyAvailableTopologyMode
	if len(addresses) == 1 {
		mode = configv1.SingleReplicaTopologyMode
	}
	s := &inputs.Settings{
		Profile:  profile,
		Version:  "1.36.3",
		Validity: 10 * 365 * 24 * time.Hour,
		Images:   map[string]string{},
		Cluster: &inputs.Cluster{
			Infrastructure: &configv1.Infrastructure{ObjectMeta: named, Status: configv1.InfrastructureStatus{
				InfrastructureName: "example-x7k2p", ControlPlaneTopology: mode, InfrastructureTopology: mode,
				APIServerURL: "https://api.example.test:6443", APIServerInternalURL: "https://api-int.example.test:6443",
				PlatformStatus: &configv1.PlatformStatus{Type: configv1.NonePlatformType},
			}},
			Network: &configv1.Network{ObjectMeta: named, Spec: configv1.NetworkSpec{
				ClusterNetwork: []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}},
				ServiceNetwork: []string{"172.30.0.0/16"},
			}},
			APIServer: &configv1.APIServer{ObjectMeta: named}, Authentication: &configv1.Authentication{ObjectMeta: named},
			OAuth: &configv1.OAuth{ObjectMeta: named}, Image: &configv1.Image{ObjectMeta: named},
			Scheduler: &configv1.Scheduler{ObjectMeta: named}, FeatureGate: &configv1.FeatureGate{ObjectMeta: named},
			Proxy: &configv1.Proxy{ObjectMeta: named}, Ingress: &configv1.Ingress{ObjectMeta: named},
			DNS: &configv1.DNS{ObjectMeta: named}, Node: &configv1.Node{ObjectMeta: named},
		},
	}
	images := []string{"etcd", "kube-controller-manager", "kube-scheduler"}
	if profile == inputs.OpenShift {
		images = []string{"etcd", "hyperkube", "tools", "cluster-policy-controller", "cluster-etcd-operator",
			"cluster-kube-controller-manager-operator", "cluster-kube-scheduler-operator"}
	}
	for _, name := range images {
		s.Images[name] = "registry.example.test/" + name + ":1"
	}
	for i, address := range addresses {
		name := "cp-" + string(rune('1'+i))
		s.Nodes = append(s.Nodes, inputs.Node{Name: name, Addresses: []netip.Addr{netip.MustParseAddr(address)}})
		s.Cluster.Nodes = append(s.Cluster.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/master": ""}},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}},
		})
	}
	return s
}

// Objects returns the objects before the first loop: the cluster's resources, the operators', and extra ones.
func Objects(s *inputs.Settings, extra ...runtime.Object) []runtime.Object {
	c := s.Cluster
	objects := []runtime.Object{c.Infrastructure, c.Network, c.APIServer, c.Authentication, c.OAuth, c.Image, c.Scheduler,
		c.FeatureGate, c.Proxy, c.Ingress, c.DNS, c.Node}
	for _, n := range c.Nodes {
		objects = append(objects, n)
	}
	for _, o := range []librarygo.Operator{librarygo.Etcd, librarygo.KubeAPIServer, librarygo.KubeControllerManager, librarygo.KubeScheduler} {
		objects = append(objects, o.Resource())
	}
	return append(objects, extra...)
}

// Secret returns a Secret.
func Secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// ConfigMap returns a ConfigMap.
func ConfigMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// Store returns a store with the objects.
func Store(t *testing.T, objects ...runtime.Object) *store.Store {
	t.Helper()
	s, err := store.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Run runs the steps and returns what they wrote, as "LOOP: OBJECT".
func Run(s *store.Store, steps ...loop.Step) ([]string, error) {
	var wrote []string
	//nolint:forbidigo // it is for tests, which start a context
	err := loop.Run(context.Background(), s, steps, loop.Options{Timeout: 5 * time.Minute, Report: func(r loop.Report) {
		for _, object := range r.Wrote {
			wrote = append(wrote, r.Loop+": "+object)
		}
	}})
	return wrote, err
}

// ObjectsAfter returns the objects after the steps have run.
func ObjectsAfter(t *testing.T, objects []runtime.Object, steps ...loop.Step) []runtime.Object {
	t.Helper()
	s := Store(t, objects...)
	if _, err := Run(s, steps...); err != nil {
		t.Fatal(err)
	}
	after, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// CheckFlags checks that the program of KUBEBUILDER_ASSETS knows all flags of the command.
func CheckFlags(t *testing.T, command []string) {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set")
	}
	arguments := append(slices.Clone(command[1:]), "--help")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(assets, command[0]), arguments...).CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
}

// WithoutOperatorResources removes the operators' resources, whose conditions several loops write.
func WithoutOperatorResources(wrote []string) []string {
	return slices.DeleteFunc(wrote, func(w string) bool { return strings.HasSuffix(w, ".operator.openshift.io cluster") })
}

// SwapLoops returns all loops of the steps, each once, with the two named ones swapped.
func SwapLoops(t *testing.T, steps []loop.Step, first, second string) []loop.Step {
	t.Helper()
	var loops []loop.Step
	at := map[string]int{}
	for _, s := range steps {
		for _, l := range s.Loops {
			at[l.Name] = len(loops)
			loops = append(loops, loop.Once(l))
		}
	}
	i, has := at[first]
	j, hasToo := at[second]
	if !has || !hasToo {
		t.Fatalf("%q and %q must be loops of %v", first, second, at)
	}
	loops[i], loops[j] = loops[j], loops[i]
	return loops
}

// CA returns a new certificate authority in PEM.
func CA(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := cert.EncodeCertificates(ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem)
}

// ConfigMapData returns the data of a ConfigMap in the store.
func ConfigMapData(t *testing.T, s *store.Store, namespace, name string) map[string]string {
	t.Helper()
	c, err := Session(s).Kube().CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Data
}

// Session returns a session of a loop named test.
func Session(s *store.Store) *store.Session { return s.Session("test") }

// Golden compares the text with testdata/NAME, or writes it with -update. JSON is converted to YAML.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	if strings.HasPrefix(got, "{") {
		readable, err := yaml.JSONToYAML([]byte(got))
		if err != nil {
			t.Fatal(err)
		}
		got = string(readable)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(ReadGolden(t, name), got); diff != "" {
		t.Errorf("%s differs (-golden +got):\n%s", path, diff)
	}
}

// ReadGolden returns the content of a golden file.
func ReadGolden(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatalf("read the golden file: %v; write it with -update", err)
	}
	return string(content)
}
