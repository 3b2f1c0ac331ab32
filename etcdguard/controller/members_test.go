package controller

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/patchtest"
)

func TestParseEndpoints(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " , ": nil,
		"10.0.0.1:2379":                          {"https://10.0.0.1:2379"},
		"https://a:2379, https://[fd00::1]:2379": {"https://a:2379", "https://[fd00::1]:2379"},
		"http://localhost:2379":                  {"http://localhost:2379"},
		"unix:///run/etcd.sock":                  {"unix:///run/etcd.sock"},
	} {
		got, err := parseEndpoints(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"10.0.0.1", "https://10.0.0.1", "ftp://x:1", "https://:2379", "unix://", "https://a:2379,b", "https://a:x"} {
		if got, err := parseEndpoints(text); !errors.Is(err, errEndpoint) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// authority makes certificates.
type authority struct {
	*testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "etcd-signer"}}
	a.certificate, a.key, a.pem = a.sign(template)
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.Fatal(err)
	}
	return certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// pair is a certificate for both sides of a connection, and its key.
func (a *authority) pair(name string) (certificate, key []byte) {
	a.Helper()
	_, private, certificate := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.Fatal(err)
	}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// realEtcd is one of several members, which are processes and ask for a client certificate.
type realEtcd struct {
	command  *exec.Cmd
	endpoint string
	output   bytes.Buffer
	exited   chan struct{}
}

func (e *realEtcd) kill() {
	_ = e.command.Process.Kill() // it may be dead
	<-e.exited
}

func (a *authority) startEtcd(n int) []*realEtcd {
	a.Helper()
	binaries, err := patchtest.Binaries()
	if err != nil {
		a.Fatal(err)
	}
	folder := a.TempDir()
	certificate, key := a.pair("etcd")
	for name, text := range map[string][]byte{"ca.crt": a.pem, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			a.Fatal(err)
		}
	}
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("m%d=unix://peer%d:0", i, i))
	}
	var all []*realEtcd
	for i := range n {
		e := &realEtcd{endpoint: "https://" + patchtest.FreeAddress(a), exited: make(chan struct{})}
		e.command = exec.Command(filepath.Join(binaries, "etcd"), fmt.Sprintf("--name=m%d", i), fmt.Sprintf("--data-dir=m%d", i), //nolint:gosec // the binary that the test is about
			fmt.Sprintf("--listen-peer-urls=unix://peer%d:0", i), fmt.Sprintf("--initial-advertise-peer-urls=unix://peer%d:0", i),
			"--listen-client-urls="+e.endpoint, "--advertise-client-urls="+e.endpoint, "--initial-cluster="+strings.Join(peers, ","),
			"--initial-cluster-token="+filepath.Base(filepath.Dir(folder)), "--client-cert-auth", "--trusted-ca-file=ca.crt", "--cert-file=tls.crt", "--key-file=tls.key",
			"--heartbeat-interval=100", "--election-timeout=500", "--unsafe-no-fsync", "--log-level=error")
		e.command.Dir, e.command.Stdout, e.command.Stderr = folder, &e.output, &e.output
		if err := e.command.Start(); err != nil {
			a.Fatal(err)
		}
		go func() { _ = e.command.Wait(); close(e.exited) }()
		a.Cleanup(e.kill)
		all = append(all, e)
	}
	return all
}

// certificates reads what the two objects with the certificates would have; the one that is nil is not there.
type certificates struct {
	client.Reader
	secret map[string][]byte
	bundle map[string]string
}

func (r *certificates) set(certificate, key, bundle []byte) {
	r.secret = map[string][]byte{"tls.crt": certificate, "tls.key": key}
	r.bundle = map[string]string{"ca-bundle.crt": string(bundle)}
}

func (r *certificates) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *corev1.Secret:
		if key.String() == "openshift-etcd/etcd-client" && r.secret != nil {
			o.Data = r.secret
			return nil
		}
	case *corev1.ConfigMap:
		if key.String() == "openshift-etcd/etcd-ca-bundle" && r.bundle != nil {
			o.Data = r.bundle
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// A real etcd of three, by the certificates in the cluster: its members are counted, those that are down are not healthy, and without a
// quorum nothing is known.
func TestRealMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts members of etcd; make proof runs it")
	}
	t.Parallel()
	c := &cluster{T: t}
	a := newAuthority(t)
	certificate, key := a.pair("client")
	has := &certificates{}
	has.set(certificate, key, a.pem)
	members := a.startEtcd(3)
	// One of the endpoints answers nobody.
	e := &etcdMembers{
		reader: has, endpoints: []string{"https://127.0.0.1:1", members[0].endpoint, members[1].endpoint}, connections: &connections{},
	}
	counts := func(n, healthy int) func() error {
		return func() error {
			got, err := e.Members(t.Context())
			if err != nil {
				return err
			}
			well := 0
			for _, m := range got {
				if m.ID == 0 || m.Learner {
					return fmt.Errorf("an odd member: %+v", m)
				}
				if m.Healthy {
					well++
				}
			}
			if len(got) != n || well != healthy {
				return fmt.Errorf("%d members, %d healthy; want %d and %d", len(got), well, n, healthy)
			}
			return nil
		}
	}
	c.eventually("there are three", counts(3, 3))

	// With the wrong certificates nothing is known.
	other := newAuthority(t)
	strange, strangeKey := other.pair("client")
	for name, use := range map[string]func(){
		"a strange client":    func() { has.set(strange, strangeKey, a.pem) },
		"a strange authority": func() { has.set(certificate, key, other.pem) },
		"no certificate":      func() { has.set(nil, nil, a.pem) },
		"no authority":        func() { has.set(certificate, key, nil) },
		"there is no Secret":  func() { has.secret = nil },
		"there is no bundle":  func() { has.bundle = nil },
	} {
		has.set(certificate, key, a.pem)
		use()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if got, err := e.Members(ctx); err == nil || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		cancel()
	}
	has.set(certificate, key, a.pem)

	members[2].kill()
	c.eventually("two are healthy", counts(3, 2))
	members[1].kill()
	c.eventually("nothing is known", func() error {
		got, err := e.Members(t.Context())
		if err == nil {
			return fmt.Errorf("%v", got)
		}
		if got != nil {
			t.Errorf("%v beside %v", got, err)
		}
		return nil
	})
}

// Members that are asked for, learners among them, and those that never started or do not answer.
func TestMembers(t *testing.T) {
	t.Parallel()
	c := &cluster{T: t, etcd: &etcdOf{}}
	c.etcd.set(3, 2)
	c.etcd.members = append(c.etcd.members, etcdguard.Member{ID: 4, Learner: true})
	e := &etcdMembers{endpoints: []string{c.etcd.serve(c)}, connections: &connections{}}
	got, err := e.Members(t.Context())
	if diff := cmp.Diff(c.etcd.members, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	c.etcd.set(0, -1)
	if got, err := e.Members(t.Context()); err == nil || got != nil {
		t.Errorf("no quorum: %v, %v", got, err)
	}
	c.etcd.set(0, 0)
	if got, err := e.Members(t.Context()); !errors.Is(err, errNoMember) || got != nil {
		t.Errorf("no members: %v, %v", got, err)
	}
	if e.healthy(t.Context(), &etcdserverpb.Member{ID: 5}, credentials{}) {
		t.Error("a member that never started is healthy")
	}
}

// Without the flag, the internal addresses of the control-plane nodes and arbiters are asked.
func TestWhereEtcdIs(t *testing.T) {
	c := install(t, arbiter, 3)
	e := &etcdMembers{reader: c.admin}
	if got, err := e.where(t.Context()); !errors.Is(err, errNoEndpoint) {
		t.Errorf("no addresses: %v, %v", got, err)
	}
	for i, address := range []string{"10.0.0.1", "fd00::2", "10.0.0.3"} {
		c.edit(object("v1", "Node", "", nodeName(i)), "kubelet", fmt.Sprintf(
			`{"status":{"addresses":[{"type":"Hostname","address":"x"},{"type":"InternalIP","address":%q}]}}`, address), "status")
	}
	c.edit(object("v1", "Node", "", "worker"), "kubelet", `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.9"}]}}`, "status")
	got, err := e.where(t.Context())
	if diff := cmp.Diff([]string{"https://10.0.0.1:2379", "https://10.0.0.3:2379", "https://[fd00::2]:2379"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
