// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/manifests"
)

// The kubeconfig works with the control plane that the machine renders from the manifests, and all rendered objects can
// be exported, in profile kubernetes (R-BIP-4, R-AIO-4). In profile openshift the release renders.
func TestRenderedControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("renders a control plane")
	}
	c := config(t, same)
	pem, _, err := cert.GenerateSelfSignedCertKey("ca.example.com", nil, nil)
	fixture.NoError(t, err)
	c.AdditionalTrustBundle, c.AdditionalTrustBundlePolicy = string(pem), installconfig.TrustBundleAlways
	state := fixture.Must(credentials.New(t.Context(), credentials.Options{
		Profile: inputs.Kubernetes, Name: c.Name, Domain: c.Domain(), Validity: inputs.DefaultValidity, Now: time.Now(),
	}))
	list := fixture.Must(manifests.Generate(manifests.Input{Config: c, Profile: inputs.Kubernetes, ClusterID: state.ClusterID, InfraID: state.InfraID}))
	o := inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2"}
	s := fixture.Must(read(t, list, state.Manifests).Settings(o))
	// The context of a subtest ends before its clean-up.
	result := fixture.Must(render.Run(context.WithoutCancel(t.Context()), s, render.Options{}))
	if _, err := export.Manifests(result.Objects); err != nil {
		t.Errorf("export: %v", err)
	}
	kubeconfig := fixture.Must(clientcmd.RESTConfigFromKubeConfig(state.Kubeconfig))
	serving := object[*corev1.Secret](t, result.Objects, "openshift-kube-apiserver/external-loadbalancer-serving-certkey")
	verify(t, kubeconfig.CAData, serving.Data[corev1.TLSCertKey], x509.VerifyOptions{DNSName: "api.sno.example.com"})
	clients := object[*corev1.ConfigMap](t, result.Objects, "openshift-kube-apiserver/client-ca")
	verify(t, []byte(clients.Data["ca-bundle.crt"]), kubeconfig.CertData, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func object[T interface {
	runtime.Object
	GetNamespace() string
	GetName() string
}](t *testing.T, objects []runtime.Object, at string,
) T {
	t.Helper()
	namespace, name, _ := strings.Cut(at, "/")
	for _, o := range objects {
		if typed, is := o.(T); is && typed.GetNamespace() == namespace && typed.GetName() == name {
			return typed
		}
	}
	t.Fatalf("no %s", at)
	var none T
	return none
}

func verify(t *testing.T, bundle, certificate []byte, o x509.VerifyOptions) {
	t.Helper()
	o.Roots = x509.NewCertPool()
	o.Roots.AppendCertsFromPEM(bundle)
	chain := fixture.Must(cert.ParseCertsPEM(certificate))
	if _, err := chain[0].Verify(o); err != nil {
		t.Errorf("%s: %v", chain[0].Subject, err)
	}
}
