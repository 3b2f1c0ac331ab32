// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/snapshot"
)

// startEtcd starts an etcd, with TLS if the address has it, and returns its endpoint.
func startEtcd(t *testing.T, scheme string, server transport.TLSInfo) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "fatal", []string{os.DevNull}
	address := url.URL{Scheme: scheme, Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls, cfg.ListenPeerUrls = []url.URL{address}, []url.URL{address}, []url.URL{{Scheme: "http", Host: address.Host}}
	cfg.ClientTLSInfo = server
	e := fixture.Must(embed.StartEtcd(cfg))
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		t.Fatal(err)
	}
	return scheme + "://" + e.Clients[0].Addr().String()
}

func (m *machine) serve(t *testing.T) string {
	t.Helper()
	certs := filepath.Join(m.root, node.ResourceDir, "etcd-certs")
	return startEtcd(t, "https", transport.TLSInfo{
		CertFile: filepath.Join(certs, "secrets/etcd-all-certs/etcd-serving-master0.crt"), KeyFile: filepath.Join(certs, "secrets/etcd-all-certs/etcd-serving-master0.key"),
		TrustedCAFile: filepath.Join(certs, "configmaps/etcd-all-bundles/server-ca-bundle.crt"), ClientCertAuth: true,
	})
}

// save writes a snapshot of an etcd with the key /k.
func save(t *testing.T, file string) {
	t.Helper()
	endpoint := startEtcd(t, "http", transport.TLSInfo{})
	write(t, endpoint, nil, "/k")
	fixture.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	fixture.NoError(t, snapshot.Save(t.Context(), endpoint, nil, file))
}

// The snapshot is taken from the rendered etcd only, which requires a client certificate (R-BIP-10).
func TestEtcdClient(t *testing.T) {
	m := newMachine(t)
	m.rendered(t)
	l := newLive(m.Options)
	fixture.NoError(t, l.WriteStaticPods())
	l.o.Endpoints.Etcd = m.serve(t)
	client := fixture.Must(l.etcdClient())
	const lease, other = "/kubernetes.io/leases/kube-system/kube-controller-manager", "/kubernetes.io/leasesother/a"
	write(t, l.o.Endpoints.Etcd, client, lease, other)
	file := filepath.Join(m.root, node.LiveSnapshot)
	noCertificate := client.Clone()
	noCertificate.Certificates = nil
	another := client.Clone()
	another.RootCAs = x509.NewCertPool()
	for name, refused := range map[string]*tls.Config{"no certificate": noCertificate, "another CA": another} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := snapshot.Save(ctx, l.o.Endpoints.Etcd, refused, file); err == nil {
			t.Errorf("%s: no error", name)
		}
		fixture.Absent(t, file)
	}
	fixture.NoError(t, os.Remove(filepath.Join(m.root, node.ManifestDir, node.StaticPods[0])))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fixture.NoError(t, l.save(ctx, nil))
	if done, err := l.hasSnapshot(t.Context()); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	// The controller-manager of the installed node must not wait for the Lease of the live system's.
	if left := read(t, l.o.Endpoints.Etcd, client); !slices.Equal(left, []string{other}) {
		t.Errorf("etcd has %v, want all but the Leases", left)
	}
	if _, err := os.Stat(filepath.Join(m.root, node.ManifestDir, node.StaticPods[0])); err != nil {
		t.Errorf("an etcd that was stopped is not started again: %v", err)
	}
	fixture.NoError(t, os.RemoveAll(filepath.Join(m.root, node.ResourceDir, "kube-apiserver-pod-1/secrets/etcd-client")))
	_, err := l.etcdClient()
	fixture.Fails(t, "without the certificate", err, errCertificate, "etcd-client/tls.crt")
}

func dial(t *testing.T, endpoint string, client *tls.Config) *clientv3.Client {
	t.Helper()
	c := fixture.Must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: client, DialTimeout: 10 * time.Second}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, endpoint string, client *tls.Config, keys ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, key := range keys {
		fixture.Must(dial(t, endpoint, client).Put(ctx, key, "v"))
	}
}

func read(t *testing.T, endpoint string, client *tls.Config) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer := fixture.Must(dial(t, endpoint, client).Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	var keys []string
	for _, kv := range answer.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// A server counts as stopped only if its port refuses connections. Otherwise the phase reports why not, and ends at its
// limit.
func TestStop(t *testing.T) {
	m := newMachine(t)
	for _, name := range node.StaticPods {
		fixture.Put(t, m.root, node.ManifestDir+"/"+name, "{}")
	}
	listener := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))
	closed, port := "127.0.0.1:1", listener.Addr().String()
	for name, test := range map[string]struct {
		ports []string
		etcd  string
		want  string
	}{
		"kube-apiserver": {[]string{port, closed, closed}, closed, port + ": something still listens"},
		"kube-scheduler": {[]string{closed, closed, port}, closed, port + ": something still listens"},
		"unknown":        {[]string{closed, "host.invalid:1", closed}, closed, "host.invalid"},
	} {
		m.Endpoints.Ports, m.Endpoints.EtcdPort = test.ports, test.etcd
		l := newLive(m.Options)
		err := phase.Run(t.Context(), []phase.Phase{{Name: "stop-control-plane", Limit: 2 * time.Second, Run: l.stopControlPlane}}, phase.Options{})
		fixture.Fails(t, name, err, phase.ErrLimit, "waiting for the end of [kube-apiserver-pod.yaml kube-controller-manager-pod.yaml kube-scheduler-pod.yaml]", test.want)
	}
	left, err := filepath.Glob(filepath.Join(m.root, node.ManifestDir, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "etcd-pod.yaml" {
		t.Errorf("manifests %v, %v: etcd runs until its data is saved", left, err)
	}
	m.Endpoints.Ports, m.Endpoints.EtcdPort = []string{closed}, port
	l := newLive(m.Options)
	if err := l.stopControlPlane(t.Context(), nil); err != nil {
		t.Error(err)
	}
	ended := make(chan error)
	go func() { ended <- l.stopEtcd(t.Context(), nil) }()
	ticker := time.NewTicker(5 * l.Interval)
	defer ticker.Stop()
	select {
	case err := <-ended:
		t.Fatalf("etcd listens: %v", err)
	case <-ticker.C:
	}
	fixture.NoError(t, listener.Close())
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.root, node.ManifestDir, "*")); len(left) > 0 {
		t.Errorf("manifests %v", left)
	}
}

const settings = "profile: kubernetes\nclusterName: sno\nbaseDomain: example.com\nvalidity: 1h\ncreated: \"2026-11-25T08:00:00Z\"\nname: cp-1.example\n"

// The peer URL is that of render's golden pods in both profiles, and name and URL are those of a release's pod (R-BIP-10).
func TestMember(t *testing.T) {
	const release = "https://192.0.2.10:2380"
	for pod, want := range map[string]string{
		string(fixture.Must(os.ReadFile("../../render/etcd/testdata/kubernetes/one-pod.yaml"))): "cp-1",
		string(fixture.Must(os.ReadFile("../../render/etcd/testdata/openshift/one-pod.yaml"))):  "cp-1",
		outputs["etcd-bootstrap/etc-kubernetes/manifests/etcd-member-pod.yaml"]:                 "etcd-master0",
	} {
		root := t.TempDir()
		fixture.Put(t, root, node.ManifestDir+"/etcd-pod.yaml", pod)
		name, peer, err := member(root, "cp-1")
		if err != nil || name != want || peer != release && !strings.Contains(pod, "cp-1="+peer) {
			t.Errorf("%s at %s, %v: the pod's initial cluster differs", name, peer, err)
		}
		if name == "cp-1" {
			_, _, err = member(root, "cp-2")
			fixture.Fails(t, "another node", err, ErrMember, "NODE_cp_2_IP")
		}
	}
}

// Without a member there is a snapshot or an error, never an empty etcd. Later boots change nothing, also without a
// snapshot.
func TestRestore(t *testing.T) {
	root := t.TempDir()
	if err := Restore(t.Context(), root); !errors.Is(err, ErrNoData) || !strings.Contains(err.Error(), node.Snapshot) {
		t.Fatalf("no snapshot: %v", err)
	}
	save(t, filepath.Join(root, node.Snapshot))
	if err := Restore(t.Context(), root); !errors.Is(err, node.ErrSettings) {
		t.Fatalf("no settings: %v", err)
	}
	fixture.Put(t, root, node.BootstrapSettings, settings)
	fixture.Put(t, root, node.ManifestDir+"/etcd-pod.yaml", `{"spec":{"containers":[{"name":"etcd","env":[{"name":"NODE_cp_1_example_IP","value":"[2001:db8::10]"}]}]}}`)
	whole := fixture.Must(os.ReadFile(filepath.Join(root, node.Snapshot)))
	for _, damaged := range []string{"", string(whole[:len(whole)/2]), strings.Replace(string(whole), "/k", "/j", 1)} {
		fixture.Put(t, root, node.Snapshot, damaged)
		fixture.Fails(t, "", Restore(t.Context(), root), ErrDamaged, node.Snapshot)
	}
	if done, err := snapshot.HasMember(filepath.Join(root, node.EtcdData)); done || err != nil {
		t.Errorf("etcd has data of a damaged snapshot: %v", err)
	}
	fixture.Put(t, root, node.Snapshot, string(whole))
	fixture.NoError(t, Restore(t.Context(), root))
	for _, dir := range []string{node.SnapshotDir, node.BootstrapConfigs} {
		fixture.NoError(t, os.RemoveAll(filepath.Join(root, dir)))
	}
	if err := Restore(t.Context(), root); err != nil {
		t.Errorf("at a later boot: %v", err)
	}
}
