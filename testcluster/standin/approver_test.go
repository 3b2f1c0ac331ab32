// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/approver"
)

const machineNamespace = "openshift-machine-api"

func machine(name, node string) *unstructured.Unstructured {
	status := map[string]any{"addresses": []any{
		map[string]any{"type": "InternalDNS", "address": name}, map[string]any{"type": "InternalIP", "address": "192.0.2.1"},
	}}
	if node != "" {
		status["nodeRef"] = map[string]any{"kind": "Node", "name": node}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
		"metadata": map[string]any{"namespace": machineNamespace, "name": name}, "spec": map[string]any{}, "status": status,
	}}
}

func (s *site) createMachine(name, node string) {
	s.Helper()
	m := machine(name, node)
	s.create(m)
	changeStatus(s, m, func(live *unstructured.Unstructured) { live.Object["status"] = machine(name, node).Object["status"] })
}

// request creates a request for a certificate of a node: its first one, as the bootstrapper, or with an address for its
// kubelet's serving certificate, as the node.
func (s *site) request(node, address string) string {
	s.Helper()
	as, groups := "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		[]string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"}
	signer, usage := certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth
	template := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}}
	if address != "" {
		as, groups, signer, usage = "system:node:"+node, []string{"system:nodes"}, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth
		template.DNSNames, template.IPAddresses = []string{node}, []net.IP{net.ParseIP(address)}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	s.must(err)
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
	s.server.Grant(s, as, rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}})
	s.must(s.server.Client(s, as, append(groups, "system:authenticated")...).Create(s.Context(), csr))
	return csr.Name
}

func (s *site) decided(request string, approved bool) {
	s.Helper()
	if !approved {
		s.settle()
	}
	s.eventually("the decision on "+request, func() error {
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: request}}
		if s.get(csr); (len(csr.Status.Conditions) == 1) != approved {
			return fmt.Errorf("conditions %v", csr.Status.Conditions) //nolint:err113 // a test
		}
		return nil
	})
}

func approverSite(t *testing.T, change ...func(*approver.Options)) *site {
	t.Helper()
	s := newSite(t, []string{machineNamespace, "openshift-config-managed"},
		[]client.Object{&certificatesv1.CertificateSigningRequest{}, &configv1.ClusterOperator{}, machine("", "")})
	s.topology(single, single)
	options := approver.DefaultOptions()
	options.RetryInterval = 100 * time.Millisecond
	for _, change := range change {
		change(options)
	}
	s.start(options)
	return s
}

func (s *site) approverCondition(kind configv1.ClusterStatusConditionType, want string) {
	s.Helper()
	s.eventually("condition "+string(kind), func() error {
		live, got := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-approver"}}, ""
		s.get(live)
		for _, c := range live.Status.Conditions {
			if c.Type == kind {
				got = string(c.Status) + " " + c.Reason
			}
		}
		if got != want {
			return fmt.Errorf("it is %q, want %q", got, want) //nolint:err113 // a test
		}
		return nil
	})
}

// Today's approver takes the word of a Machine for any number of requests, with any topology (U-APP-3); the module's takes
// it once, and without Machines a person's.
func TestApproverByMachines(t *testing.T) {
	for _, stock := range []bool{true, false} {
		t.Run(fmt.Sprintf("stock %t", stock), func(t *testing.T) {
			s := approverSite(t, func(o *approver.Options) { o.Stock = stock })
			s.approverCondition(configv1.OperatorAvailable, "True AsExpected")
			clients := func(want string) {
				t.Helper()
				if stock {
					want = ""
				}
				s.approverCondition("NodeClientApprovalEnabled", want)
			}
			clients("False NoSecondSource")
			late := s.request("w1.example.com", "")
			s.decided(late, false)
			s.createMachine("w1.example.com", "") // a Machine sends no event
			s.decided(late, true)
			clients("True AsExpected")
			s.decided(s.request("w1.example.com", ""), stock)
			s.decided(s.request("w2.example.com", ""), false)

			s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w3.example.com"}})
			s.createMachine("w3.example.com", "w3.example.com")
			s.decided(s.request("w3.example.com", "192.0.2.1"), true)
			s.decided(s.request("w3.example.com", "192.0.2.9"), false)
			s.silent()
		})
	}
}

func TestApproverConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]string{"nodeClientCert: {disabled: true}\n": "False DisabledByConfiguration", "nodeClientCert: [": "True AsExpected"} {
		t.Run(want, func(t *testing.T) {
			s := &site{T: t}
			s.must(os.WriteFile(file, []byte(text), 0o600))
			s = approverSite(t, func(o *approver.Options) { o.Config = file })
			s.createMachine("w1.example.com", "")
			s.topology(many, many)
			s.approverCondition("NodeClientApprovalEnabled", want)
			s.decided(s.request("w1.example.com", ""), want == "True AsExpected")
		})
	}
}
