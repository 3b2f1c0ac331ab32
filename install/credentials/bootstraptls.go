// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/node"
)

const (
	year     = 365 * 24 * time.Hour
	keyBits  = 2048
	kubelets = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
)

// bootstrapCertificate is a certificate of the installer, as a file of tls/ (U-INS-34). Without a signer it is one.
type bootstrapCertificate struct {
	name, signer string
	subject      pkix.Name
	validity     time.Duration
	// server has names or addresses of the server; nil is a client.
	server func(BootstrapOptions) ([]string, []net.IP)
	// chain means that the file has the signer's certificate too.
	chain bool
}

func user(name string, groups ...string) pkix.Name {
	return pkix.Name{CommonName: name, Organization: groups}
}

// bootstrapCertificates are those of openshift-install 4.19, with their validity; signers are before what they sign.
var bootstrapCertificates = []bootstrapCertificate{
	{name: "admin-kubeconfig-signer", subject: pkix.Name{CommonName: "admin-kubeconfig-signer", OrganizationalUnit: []string{"openshift"}}, validity: 10 * year},
	{name: "aggregator-signer", subject: pkix.Name{CommonName: "aggregator-signer", OrganizationalUnit: []string{"openshift"}}, validity: node.BootstrapValidity},
	{name: "aggregator-ca", subject: pkix.Name{CommonName: "aggregator", OrganizationalUnit: []string{"bootkube"}}, validity: node.BootstrapValidity},
	{name: "kube-apiserver-lb-signer", subject: pkix.Name{CommonName: "kube-apiserver-lb-signer", OrganizationalUnit: []string{"openshift"}}, validity: 10 * year},
	{name: "kube-apiserver-localhost-signer", subject: pkix.Name{CommonName: "kube-apiserver-localhost-signer", OrganizationalUnit: []string{"openshift"}}, validity: 10 * year},
	{name: "kube-apiserver-service-network-signer", subject: pkix.Name{CommonName: "kube-apiserver-service-network-signer", OrganizationalUnit: []string{"openshift"}}, validity: 10 * year},
	{name: "kube-apiserver-to-kubelet-signer", subject: pkix.Name{CommonName: "kube-apiserver-to-kubelet-signer", OrganizationalUnit: []string{"openshift"}}, validity: year},
	{name: "kube-control-plane-signer", subject: pkix.Name{CommonName: "kube-control-plane-signer", OrganizationalUnit: []string{"openshift"}}, validity: year},
	{name: "kubelet-signer", subject: pkix.Name{CommonName: "kubelet-signer", OrganizationalUnit: []string{"openshift"}}, validity: node.BootstrapValidity},
	{name: "kubelet-bootstrap-kubeconfig-signer", subject: pkix.Name{CommonName: "kubelet-bootstrap-kubeconfig-signer", OrganizationalUnit: []string{"openshift"}}, validity: 10 * year},

	{name: "admin-kubeconfig-client", signer: "admin-kubeconfig-signer", subject: user("system:admin", "system:masters"), validity: 10 * year},
	{name: "aggregator-client", signer: "aggregator-signer", subject: user("system:kube-apiserver-proxy", "kube-master"), validity: node.BootstrapValidity},
	{name: "apiserver-proxy", signer: "aggregator-ca", subject: user("system:kube-apiserver-proxy", "kube-master"), validity: node.BootstrapValidity},
	{name: "kube-apiserver-lb-server", signer: "kube-apiserver-lb-signer", subject: user("system:kube-apiserver", "kube-master"), validity: node.BootstrapValidity, chain: true,
		server: func(o BootstrapOptions) ([]string, []net.IP) { return []string{"api." + o.Domain}, nil }},
	{name: "kube-apiserver-internal-lb-server", signer: "kube-apiserver-lb-signer", subject: user("system:kube-apiserver", "kube-master"), validity: node.BootstrapValidity, chain: true,
		server: func(o BootstrapOptions) ([]string, []net.IP) { return []string{"api-int." + o.Domain}, nil }},
	{name: "kube-apiserver-localhost-server", signer: "kube-apiserver-localhost-signer", subject: user("system:kube-apiserver", "kube-master"), validity: node.BootstrapValidity, chain: true,
		server: func(BootstrapOptions) ([]string, []net.IP) {
			return []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		}},
	{name: "kube-apiserver-service-network-server", signer: "kube-apiserver-service-network-signer", subject: user("system:kube-apiserver", "kube-master"), validity: node.BootstrapValidity, chain: true,
		server: func(o BootstrapOptions) (dns []string, addresses []net.IP) {
			for _, service := range []string{"kubernetes", "openshift"} {
				dns = append(dns, service, service+".default", service+".default.svc", service+".default.svc.cluster.local")
			}
			for _, p := range o.ServiceNetwork {
				addresses = append(addresses, p.Addr().Next().AsSlice())
			}
			return dns, addresses
		}},
	{name: "kube-apiserver-to-kubelet-client", signer: "kube-apiserver-to-kubelet-signer", subject: user("system:kube-apiserver", "kube-master"), validity: year},
	{name: "kube-control-plane-kube-controller-manager-client", signer: "kube-control-plane-signer", subject: user("system:admin", "system:masters"), validity: year},
	{name: "kube-control-plane-kube-scheduler-client", signer: "kube-control-plane-signer", subject: user("system:admin", "system:masters"), validity: year},
	{name: "kubelet-client", signer: "kubelet-bootstrap-kubeconfig-signer", validity: 10 * year,
		subject: user(kubelets, "system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts")},
}

// bootstrapBundles are files with the certificates of signers.
var bootstrapBundles = map[string][]string{
	"admin-kubeconfig-ca-bundle":               {"admin-kubeconfig-signer"},
	"aggregator-ca-bundle":                     {"aggregator-signer"},
	"kube-apiserver-lb-ca-bundle":              {"kube-apiserver-lb-signer"},
	"kube-apiserver-localhost-ca-bundle":       {"kube-apiserver-localhost-signer"},
	"kube-apiserver-service-network-ca-bundle": {"kube-apiserver-service-network-signer"},
	"kube-apiserver-to-kubelet-ca-bundle":      {"kube-apiserver-to-kubelet-signer"},
	"kube-control-plane-ca-bundle":             {"kube-control-plane-signer"},
	"kubelet-bootstrap-kubeconfig-ca-bundle":   {"kubelet-bootstrap-kubeconfig-signer"},
	"kubelet-client-ca-bundle":                 {"kubelet-signer"},
	"kubelet-serving-ca-bundle":                {"kubelet-signer"},
	"kube-apiserver-complete-server-ca-bundle": {"kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer"},
	"kube-apiserver-complete-client-ca-bundle": {"admin-kubeconfig-signer", "kubelet-signer", "kube-control-plane-signer", "kube-apiserver-to-kubelet-signer", "kubelet-bootstrap-kubeconfig-signer"},
}

// BootstrapOptions are options of BootstrapFiles.
type BootstrapOptions struct {
	// Domain is the cluster's.
	Domain         string
	ServiceNetwork []netip.Prefix
	Now            time.Time
	// RootCA, Server and ServerKey are the authority and the certificate of the machine-config server, in PEM.
	RootCA, Server, ServerKey []byte
}

// AdminKubeconfig is the name of the administrator's kubeconfig for other machines among the BootstrapFiles.
const AdminKubeconfig = "kubeconfig"

// BootstrapFiles returns the files of tls/ and auth/ that the renders and the static pods of a bootstrap phase
// read (U-INS-34): new keys, certificates as of openshift-install, and kubeconfigs.
func BootstrapFiles(ctx context.Context, o BootstrapOptions) ([]files.File, error) {
	made := make([]*rsa.PrivateKey, len(bootstrapCertificates)+2)
	group, ctx := errgroup.WithContext(ctx)
	for i := range made {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				made[i], err = rsa.GenerateKey(rand.Reader, keyBits)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("make the keys of the bootstrap phase: %w", err)
	}
	var list []files.File
	add := func(name string, parts ...[]byte) {
		list = append(list, files.File{Path: name, Mode: 0o600, Content: bytes.Join(parts, nil)})
	}
	for i, name := range []string{"service-account", "bound-service-account-signing-key"} {
		public, err := x509.MarshalPKIXPublicKey(&made[i].PublicKey)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		add("tls/"+name+".key", keyPEM(made[i]))
		add("tls/"+name+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	}
	signers, keys, texts := map[string]*x509.Certificate{}, map[string]*rsa.PrivateKey{}, map[string][]byte{}
	for i, c := range bootstrapCertificates {
		key := made[i+2]
		signed, err := c.sign(o, key, signers[c.signer], keys[c.signer])
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", c.name, err)
		}
		signers[c.name], keys[c.name] = signed, key
		texts[c.name] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed.Raw})
		if c.chain {
			add("tls/"+c.name+".crt", texts[c.name], texts[c.signer])
		} else {
			add("tls/"+c.name+".crt", texts[c.name])
		}
		// Nothing in the live system signs with it.
		if c.name != "admin-kubeconfig-signer" {
			add("tls/"+c.name+".key", keyPEM(key))
		}
	}
	add("tls/root-ca.crt", o.RootCA)
	add("tls/machine-config-server.crt", o.Server)
	add("tls/machine-config-server.key", o.ServerKey)
	bundles := map[string][]byte{}
	for name, of := range bootstrapBundles {
		for _, signer := range of {
			bundles[name] = append(bundles[name], texts[signer]...)
		}
		add("tls/"+name+".crt", bundles[name])
	}
	for _, k := range []struct{ name, server, user, certificate string }{
		{AdminKubeconfig, "https://api." + o.Domain + ":6443", "admin", "admin-kubeconfig-client"},
		{"auth/kubeconfig", "https://api-int." + o.Domain + ":6443", "admin", "admin-kubeconfig-client"},
		{"auth/kubeconfig-loopback", "https://localhost:6443", "loopback", "admin-kubeconfig-client"},
		{"auth/kubeconfig-kubelet", "https://api-int." + o.Domain + ":6443", "kubelet", "kubelet-client"},
	} {
		config := clientcmdapi.NewConfig()
		config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: k.server, CertificateAuthorityData: bundles["kube-apiserver-complete-server-ca-bundle"]}
		config.AuthInfos[k.user] = &clientcmdapi.AuthInfo{ClientCertificateData: texts[k.certificate], ClientKeyData: keyPEM(keys[k.certificate])}
		config.Contexts[k.user] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: k.user}
		config.CurrentContext = k.user
		text, err := clientcmd.Write(*config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		add(k.name, text)
	}
	return list, nil
}

func keyPEM(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func (c bootstrapCertificate) sign(o BootstrapOptions, key *rsa.PrivateKey, signer *x509.Certificate, signerKey *rsa.PrivateKey) (*x509.Certificate, error) {
	template := &x509.Certificate{Subject: c.subject, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment}
	switch {
	case c.signer == "":
		template.IsCA, template.KeyUsage = true, template.KeyUsage|x509.KeyUsageCertSign
	case c.server != nil:
		template.DNSNames, template.IPAddresses = c.server(o)
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	default:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return issue(template, o.Now, c.validity, key, signer, signerKey)
}
