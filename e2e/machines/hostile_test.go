// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/joining"
)

// hostile are requests with the kubeconfig with which kubelets request their first certificates.
// kube-controller-manager would approve those of an administrator, who may have any node's certificate.
var hostile = []struct{ name, node, signer, usages string }{
	{"hostile-client-of-another", workerName, "kubernetes.io/kube-apiserver-client-kubelet", "client auth"},
	{"hostile-client-that-serves", hostname, "kubernetes.io/kube-apiserver-client-kubelet", "client auth, server auth"},
	{"hostile-serving", hostname, "kubernetes.io/kubelet-serving", "server auth"},
}

var createHostile = check{"the hostile requests exist", "kubectl --kubeconfig=/etc/kubernetes/kubeconfig create --filename=/opt/check/hostile.yaml; " +
	client + "get certificatesigningrequests " + hostile[0].name + " " + hostile[1].name + " " + hostile[2].name}

// pending holds while nobody has decided the hostile requests.
func pending() []check {
	var all []check
	for _, h := range hostile {
		all = append(all, check{h.name + " is pending", `test -z "$(` + client + `get certificatesigningrequest ` + h.name + ` -o jsonpath='{.status.conditions}')"`})
	}
	return all
}

func hostileRequests() string {
	GinkgoHelper()
	var all []string
	for _, h := range hostile {
		template := x509.CertificateRequest{Subject: joining.Subject(h.node)}
		if h.usages == "server auth" {
			template.DNSNames = []string{h.node}
		}
		text := joining.Encode(suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), template)
		all = append(all, fmt.Sprintf("apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: %s}\nspec:\n"+
			"  signerName: %s\n  usages: [digital signature, %s]\n  request: %s\n", h.name, h.signer, h.usages, base64.StdEncoding.EncodeToString(text)))
	}
	return strings.Join(all, "---\n")
}
