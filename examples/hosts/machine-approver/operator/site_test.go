// SPDX-License-Identifier: Apache-2.0

package operator

import (
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
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

const machineCRD = "machines.machine.openshift.io"

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.Infrastructures, patchtest.ClusterOperators, machineCRD}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	user             = "machine-approver-host"
	machineNamespace = "openshift-machine-api"

	poll    = 50 * time.Millisecond
	timeout = 30 * time.Second
	// quietTime is how long the host must not write to count as settled; longer than several passes.
	quietTime = time.Second
)

var errNoKubelet = errors.New("no kubelet")

type site struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	stop   func()

	mu       sync.Mutex
	kubelets map[string][]*x509.Certificate
}

// newSite publishes the authority of the kubelets. At the end of the test the host stops and the objects are deleted.
func newSite(t *testing.T, server *patchtest.APIServer) *site {
	t.Helper()
	s := &site{T: t, server: server, admin: server.Admin(t), kubelets: map[string][]*x509.Certificate{}}
	for _, name := range []string{authorityNamespace, machineNamespace} {
		err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.clear)
	s.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: authorityNamespace, Name: authorityName},
		Data:       map[string]string{authorityKey: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority().certificate.Raw}))},
	})
	return s
}

func (s *site) start(arguments ...func(*Options)) {
	s.Helper()
	config := s.server.Config(s, user, "system:masters")
	options := DefaultOptions()
	options.RetryInterval = 100 * time.Millisecond
	options.call = func(_ context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if chain := s.kubelets[node.Name]; chain != nil {
			return chain, nil
		}
		return nil, errNoKubelet
	}
	for _, change := range arguments {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config, options) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the host failed: %v", err)
		}
	})
	s.Cleanup(s.stop)
}

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(machineKind)
	for _, each := range []struct {
		kind    client.Object
		options []client.DeleteAllOfOption
	}{
		{&certificatesv1.CertificateSigningRequest{}, nil}, {&corev1.Node{}, nil}, {&configv1.Infrastructure{}, nil}, {&configv1.ClusterOperator{}, nil},
		{machine, []client.DeleteAllOfOption{client.InNamespace(machineNamespace)}},
		{&corev1.ConfigMap{}, []client.DeleteAllOfOption{client.InNamespace(authorityNamespace)}},
		{&eventsv1.Event{}, []client.DeleteAllOfOption{client.InNamespace("default")}},
	} {
		if err := s.admin.DeleteAllOf(ctx, each.kind, each.options...); err != nil {
			s.Errorf("clearing %T: %v", each.kind, err)
		}
	}
}

func (s *site) create(object client.Object) {
	s.Helper()
	if err := s.admin.Create(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

func (s *site) topology(mode configv1.TopologyMode) {
	s.Helper()
	s.eventually("setting the topology", func() string {
		object := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			err = s.admin.Create(s.Context(), object)
		}
		if err != nil {
			return err.Error()
		}
		object.Status.ControlPlaneTopology, object.Status.InfrastructureTopology = mode, mode
		object.Status.CPUPartitioning = configv1.CPUPartitioningNone
		object.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
		if err := s.admin.Status().Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *site) node(name string) {
	s.Helper()
	s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// machine creates a Machine with the internal DNS name and these addresses. joined is the node that it has, if any.
func (s *site) machine(name, joined string, addresses ...string) {
	s.Helper()
	machine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	machine.SetGroupVersionKind(machineKind)
	machine.SetNamespace(machineNamespace)
	machine.SetName(name)
	s.create(machine)
	all := []any{map[string]any{"type": "InternalDNS", "address": name}}
	for _, address := range addresses {
		all = append(all, map[string]any{"type": "InternalIP", "address": address})
	}
	status := map[string]any{"addresses": all}
	if joined != "" {
		status["nodeRef"] = map[string]any{"kind": "Node", "name": joined}
	}
	machine.Object["status"] = status
	if err := s.admin.Status().Update(s.Context(), machine); err != nil {
		s.Fatal(err)
	}
}

// presents sets what a node's kubelet presents. signer is the authority, names are of the certificate.
func (s *site) presents(node string, signer *signedBy, of string, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kubelets[node] = []*x509.Certificate{signer.serving(of, names...)}
}

// joins creates the client request of a node, as the bootstrapper.
func (s *site) joins(node string) string {
	s.Helper()
	return s.request(bootstrapper, bootstrapperGroups.UnsortedList(), certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, node)
}

// serves creates the serving request of a node, as the node.
func (s *site) serves(node string, names ...string) string {
	s.Helper()
	return s.request(nodePrefix+node, nodeGroups.UnsortedList(), certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, node, names...)
}

func (s *site) request(as string, groups []string, signer string, usage certificatesv1.KeyUsage, node string, names ...string) string {
	s.Helper()
	s.server.Grant(s, as, rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}})
	kube := s.server.Client(s, as, groups...)
	csr := signingRequest(signer, usage, node, names...)
	if err := kube.Create(s.Context(), csr); err != nil {
		s.Fatal(err)
	}
	return csr.Name
}

func signingRequest(signer string, usage certificatesv1.KeyUsage, node string, names ...string) *certificatesv1.CertificateSigningRequest {
	template := &x509.CertificateRequest{Subject: subject(node)}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der := must(x509.CreateCertificateRequest(rand.Reader, template, newKey()))
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func subject(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: nodePrefix + node}
}

// signedBy is an authority.
type signedBy struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

var (
	authority = sync.OnceValue(newAuthority)
	foreign   = sync.OnceValue(newAuthority)
)

func newAuthority() *signedBy {
	a := &signedBy{key: newKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubelets"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))))
	return a
}

func (s *signedBy) serving(node string, names ...string) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject(node), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, s.certificate, newKey().Public(), s.key))))
}

func (s *site) eventually(what string, problem func() string) {
	s.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(s.Context(), poll, timeout, true, func(context.Context) (bool, error) {
		last = problem()
		return last == "", nil
	})
	if err != nil {
		s.Fatalf("%s: %v: %s", what, err, last)
	}
}

// approval returns the reason of the approval, "pending", or another state.
func (s *site) approval(request string) string {
	s.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.admin.Get(s.Context(), client.ObjectKey{Name: request}, csr); err != nil {
		s.Fatal(err)
	}
	if len(csr.Status.Conditions) == 0 {
		return "pending"
	}
	if c := csr.Status.Conditions[0]; c.Type != certificatesv1.CertificateApproved {
		return string(c.Type)
	}
	return csr.Status.Conditions[0].Reason
}

func (s *site) approved(request string) {
	s.Helper()
	s.eventually("the approval of "+request, func() string { return cmp.Diff("NodeCSRApprove", s.approval(request)) })
}

// refused waits for the event about a pending request.
func (s *site) refused(request, reason string) {
	s.Helper()
	s.eventually("the event about "+request, func() string {
		if approval := s.approval(request); approval != "pending" {
			return "the request is " + approval
		}
		var list eventsv1.EventList
		if err := s.admin.List(s.Context(), &list, client.InNamespace("default")); err != nil {
			return err.Error()
		}
		found := []string{}
		for _, event := range list.Items {
			if event.Regarding.Name == request {
				found = append(found, event.Reason)
			}
		}
		if !slices.Contains(found, reason) {
			return fmt.Sprintf("the reasons are %v; want %s", found, reason)
		}
		return ""
	})
}

func (s *site) expect(kind configv1.ClusterStatusConditionType, want string) {
	s.Helper()
	s.eventually("condition "+string(kind), func() string {
		live := &configv1.ClusterOperator{}
		if err := s.admin.Get(s.Context(), client.ObjectKey{Name: "machine-approver"}, live); err != nil {
			return err.Error()
		}
		got := "none"
		for _, c := range live.Status.Conditions {
			if c.Type == kind {
				got = string(c.Status) + " " + c.Reason
			}
		}
		return cmp.Diff(want, got)
	})
}

// silent fails the test for writes of the host after an event without a change. It tries three times, because an
// earlier write may come late on a busy machine.
func (s *site) silent() {
	s.Helper()
	var writes []patchtest.Write
	for range 3 {
		count, since := -1, time.Now()
		if writes = s.server.WritesDuring(s, user, func() {
			s.touch()
			s.eventually("settling", func() string {
				if now := len(s.server.Writes(s, user)); now != count {
					count, since = now, time.Now()
				}
				if time.Since(since) < quietTime {
					return "the last write is too recent"
				}
				return ""
			})
		}); len(writes) == 0 {
			return
		}
	}
	s.Errorf("unneeded writes: %v", writes)
}

// touch causes a pass.
func (s *site) touch() {
	s.Helper()
	s.eventually("touching the Infrastructure", func() string {
		object := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		switch err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return ""
		case err != nil:
			return err.Error()
		}
		object.Annotations = map[string]string{"example.com/touched": strconv.FormatInt(time.Now().UnixNano(), 10)}
		if err := s.admin.Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}
