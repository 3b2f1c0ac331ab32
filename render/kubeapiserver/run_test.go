// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/store"
)

// R-REN-1, R-REN-6.
func TestRun(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		t.Run(string(profile), func(t *testing.T) {
			s := settings(profile)
			st := runDefault(t, profile)
			folder := "one-node-" + string(profile) + "/"
			fixture.Golden(t, folder+"pod.yaml", fixture.ConfigMapData(t, st, Namespace, "kube-apiserver-pod-1")["pod.yaml"])
			for name, content := range fixture.ConfigMapData(t, st, Namespace, "config-1") {
				fixture.Golden(t, folder+name, content)
			}
			fixture.Golden(t, folder+"policy.yaml", fixture.ConfigMapData(t, st, Namespace, "kube-apiserver-audit-policies-1")["policy.yaml"])
			fixture.Golden(t, folder+"objects.txt", inventory(t, st))

			again, err := fixture.Run(st, Steps(s)...)
			if err != nil || len(again) > 0 {
				t.Errorf("a second run must write nothing, it wrote %q: %v", again, err)
			}
		})
	}
}

// With two adjacent loops swapped, the run fails if the order matters (R-REN-6).
func TestOrder(t *testing.T) {
	const (
		certificates = "kube-apiserver: certificates"
		bound        = "kube-apiserver: bound tokens"
		observation  = "kube-apiserver: config observation"
		target       = "kube-apiserver: target config"
		sync         = "kube-apiserver: resource sync"
		revision     = "kube-apiserver: revision"
	)
	s := settings(inputs.Kubernetes)
	steps := Steps(s)
	others := fixture.Objects(s, others(t)...)
	for _, tt := range []struct {
		first, second string
		objects       []runtime.Object
		want          string
	}{
		{observation, target, objects(t, s), "servingInfo.namedCertificates"},
		{target, sync, objects(t, s), "kube-apiserver/client-ca"},
		{sync, revision, objects(t, s), `"kube-apiserver: resource sync", which runs later, writes`},
		{certificates, target, slices.Concat(others, keysOf(t, boundOnly)), "admin-kubeconfig-client-ca"},
		{bound, target, slices.Concat(others, keysOf(t, certificatesOnly)), "bound-sa-token-signing-certs"},
	} {
		t.Run(tt.first+" after "+tt.second, func(t *testing.T) {
			_, err := fixture.Run(fixture.Store(t, tt.objects...), fixture.MoveAfter(t, steps, tt.first, tt.second)...)
			if (!errors.Is(err, loop.ErrOrder) && !errors.Is(err, observe.ErrNotObserved)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about the order and %s", err, tt.want)
			}
		})
	}

	if testing.Short() {
		return // the rest makes keys for each order
	}
	want := runDefault(t, inputs.Kubernetes)
	swapped := func(i, j int) []loop.Step {
		other := slices.Clone(steps)
		other[i], other[j] = other[j], other[i]
		return other
	}
	cycle := func(loops ...int) []loop.Step {
		other := slices.Clone(steps)
		other[4].Loops = []loop.Loop{steps[4].Loops[loops[0]], steps[4].Loops[loops[1]], steps[4].Loops[loops[2]]}
		return other
	}
	for name, order := range map[string][]loop.Step{
		"encryption before certificates":                swapped(0, 1),
		"bound tokens before encryption":                swapped(1, 2),
		"static resources before bound tokens":          swapped(2, 3),
		"the cycle before static resources":             swapped(3, 4),
		"target config first in the cycle":              cycle(1, 0, 2),
		"resource sync before target config in a cycle": cycle(0, 2, 1),
	} {
		t.Run(name+" makes no difference", func(t *testing.T) {
			got := fixture.Store(t, objects(t, s)...)
			if _, err := fixture.Run(got, order...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inventory(t, want), inventory(t, got)); diff != "" {
				t.Errorf("the result differs (-want +got):\n%s", diff)
			}
			for _, name := range []string{"kube-apiserver-pod-1", "config-1"} {
				if diff := cmp.Diff(fixture.ConfigMapData(t, want, Namespace, name), fixture.ConfigMapData(t, got, Namespace, name)); diff != "" {
					t.Errorf("%s differs (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func certificatesOnly(name string) bool { return !strings.Contains(name, "bound-") }

func boundOnly(name string) bool { return strings.Contains(name, "bound-") }

func keysOf(t *testing.T, wanted func(name string) bool) []runtime.Object {
	t.Helper()
	made, err := keys()
	if err != nil {
		t.Fatal(err)
	}
	var found []runtime.Object
	for _, object := range made {
		if metadata, is := object.(interface{ GetName() string }); is && wanted(metadata.GetName()) {
			found = append(found, object.DeepCopyObject())
		}
	}
	return found
}

// The error names the missing object of etcd or kube-controller-manager.
func TestComponentsBefore(t *testing.T) {
	s := settings(inputs.Kubernetes)
	for _, name := range []string{"etcd-endpoints", "etcd-serving-ca", "etcd-client", "csr-controller-ca", "sa-token-signing-certs"} {
		t.Run(name, func(t *testing.T) {
			without := slices.DeleteFunc(objects(t, s), func(object runtime.Object) bool {
				metadata, is := object.(interface{ GetName() string })
				return is && metadata.GetName() == name
			})
			_, err := fixture.Run(fixture.Store(t, without...), Steps(s)...)
			if !errors.Is(err, loop.ErrFailed) || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want one that names %s", err, name)
			}
		})
	}
}

// The encryption configuration of the first revision writes nothing in plain text.
func TestEncryption(t *testing.T) {
	for _, kind := range []configv1.EncryptionType{configv1.EncryptionTypeAESCBC, configv1.EncryptionTypeAESGCM} {
		t.Run(string(kind), func(t *testing.T) {
			s := settings(inputs.Kubernetes)
			s.Cluster.APIServer.Spec.Encryption.Type = kind
			st := run(t, s)
			var config apiserverv1.EncryptionConfiguration
			if err := json.Unmarshal(fixture.SecretData(t, st, store.Object{Namespace: Namespace, Name: "encryption-config-1"})["encryption-config"], &config); err != nil {
				t.Fatal(err)
			}
			writers := map[string]string{}
			for _, r := range config.Resources {
				first := r.Providers[0]
				for _, resource := range r.Resources {
					switch {
					case first.AESCBC != nil && len(first.AESCBC.Keys) == 1:
						writers[resource] = "aescbc"
					case first.AESGCM != nil && len(first.AESGCM.Keys) == 1:
						writers[resource] = "aesgcm"
					default:
						writers[resource] = "plain text"
					}
				}
			}
			if diff := cmp.Diff(map[string]string{"secrets": string(kind), "configmaps": string(kind)}, writers); diff != "" {
				t.Errorf("what is written how (-want +got):\n%s", diff)
			}
			pod := fixture.ConfigMapData(t, st, Namespace, "kube-apiserver-pod-1")["pod.yaml"]
			if !strings.Contains(pod, "--encryption-provider-config=/etc/kubernetes/static-pod-resources/secrets/encryption-config/encryption-config") {
				t.Error("kube-apiserver has no flag for the encryption configuration")
			}
			again, err := fixture.Run(st, Steps(s)...)
			if err != nil || len(again) > 0 {
				t.Errorf("a second run must write nothing, it wrote %q: %v", again, err)
			}
		})
	}
}

// A user's CA and serving certificate are in the first revision.
func TestUsersCertificates(t *testing.T) {
	s := settings(inputs.Kubernetes)
	s.Cluster.APIServer.Spec.ClientCA.Name = "users"
	s.Cluster.APIServer.Spec.ServingCerts.NamedCertificates = []configv1.APIServerNamedServingCert{{
		Names: []string{"api.users.test"}, ServingCertificate: configv1.SecretNameReference{Name: "serving"},
	}}
	ca := fixture.CA(t, "users")
	st := run(t, s, fixture.ConfigMap(configNamespace, "users", map[string]string{bundleKey: ca}),
		fixture.Secret(configNamespace, "serving", map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}))
	for _, bundle := range []store.Object{{Namespace: Namespace, Name: "client-ca"}, {Namespace: managedNamespace, Name: "kube-apiserver-client-ca"}} {
		if !strings.Contains(fixture.ConfigMapData(t, st, bundle.Namespace, bundle.Name)[bundleKey], ca) {
			t.Errorf("the CA of users is not in %s", bundle)
		}
	}
	if got := string(fixture.SecretData(t, st, store.Object{Namespace: Namespace, Name: "user-serving-cert-000"})["tls.crt"]); got != "certificate" {
		t.Errorf("serving certificate %q", got)
	}
	if strings.Contains(inventory(t, st), "revision-status-2") {
		t.Error("there is a second revision")
	}
}

// A webhook and an OIDC provider (R-REN-12).
func TestTokens(t *testing.T) {
	t.Run("webhook", func(t *testing.T) {
		s := settings(inputs.Kubernetes)
		s.Cluster.Authentication.Spec.Type = configv1.AuthenticationTypeNone
		s.Cluster.Authentication.Spec.WebhookTokenAuthenticator = &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}}
		st := run(t, s, fixture.Secret(configNamespace, "tokens", map[string][]byte{"kubeConfig": []byte(goodWebhook)}))
		if got := string(fixture.SecretData(t, st, store.Object{Namespace: Namespace, Name: "webhook-authenticator-1"})["kubeConfig"]); got != goodWebhook {
			t.Errorf("kubeConfig of the revision: %q", got)
		}
	})
	t.Run("OIDC", func(t *testing.T) {
		s := settings(inputs.OpenShift)
		s.Cluster.Authentication.Spec.Type = configv1.AuthenticationTypeOIDC
		s.Cluster.Authentication.Spec.OIDCProviders = []configv1.OIDCProvider{{
			Issuer: configv1.TokenIssuer{
				URL: "https://id.test", Audiences: []configv1.TokenAudience{"a"}, CertificateAuthority: configv1.ConfigMapNameReference{Name: "issuer"},
			},
			ClaimMappings: configv1.TokenClaimMappings{Username: configv1.UsernameClaimMapping{Claim: "email"}},
		}}
		ca := fixture.CA(t, "issuer")
		st := run(t, s, fixture.ConfigMap(configNamespace, "issuer", map[string]string{bundleKey: ca}))
		var config struct {
			JWT []struct {
				Issuer struct{ URL, CertificateAuthority string }
			}
		}
		if err := json.Unmarshal([]byte(fixture.ConfigMapData(t, st, Namespace, "auth-config-1")["auth-config.json"]), &config); err != nil {
			t.Fatal(err)
		}
		if len(config.JWT) != 1 || config.JWT[0].Issuer.URL != "https://id.test" || config.JWT[0].Issuer.CertificateAuthority != ca {
			t.Errorf("auth-config.json: %+v", config)
		}
	})
}

func TestProxy(t *testing.T) {
	proxy := corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy.test:3128"}
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		s := settings(profile)
		s.Cluster.Proxy.Status.HTTPProxy = proxy.Value
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(fixture.ConfigMapData(t, run(t, s), Namespace, "kube-apiserver-pod")["pod.yaml"]), &pod); err != nil {
			t.Fatal(err)
		}
		for _, c := range pod.Spec.Containers {
			if !slices.Contains(c.Env, proxy) {
				t.Errorf("%s: container %s has no proxy: %v", profile, c.Name, c.Env)
			}
		}
	}
}

// kube-controller-manager may approve renewals in profile kubernetes, nothing in profile openshift, where the machine
// approver does, and joining kubelets in neither (R-APP-3).
func TestStaticResources(t *testing.T) {
	for profile, want := range map[inputs.Profile][]string{
		inputs.OpenShift:  nil,
		inputs.Kubernetes: {"node-renewal-approve"},
	} {
		all := inventory(t, runDefault(t, profile))
		var got []string
		for line := range strings.Lines(all) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "ClusterRoleBinding /node-"); is {
				got = append(got, "node-"+name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}
