// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/topology"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/manifests"
)

func config(t testing.TB, change func(string) string) *installconfig.Config {
	t.Helper()
	const file = "../installconfig/testdata/install-config.yaml"
	text := fixture.Must(os.ReadFile(file))
	c, _, err := installconfig.Read(file, []byte(change(string(text))), installconfig.Options{Purpose: installconfig.SingleNode})
	fixture.NoError(t, err)
	return c
}

func same(text string) string { return text }

func read(t *testing.T, lists ...[]files.File) *inputs.Cluster {
	t.Helper()
	dir := t.TempDir()
	node := fixture.Must(manifests.Node("master0", []netip.Addr{netip.MustParseAddr("192.0.2.10")}))
	merged := fixture.Must(manifests.Merge(append(lists, []files.File{node})...))
	for _, f := range merged {
		if f.Mode != 0o600 {
			t.Errorf("%s has mode %o", f.Path, f.Mode)
		}
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, f.Path), f.Content, 0o600))
	}
	return fixture.Must(inputs.Read(os.DirFS(dir), time.Now()))
}

// The same input makes the same files, in both profiles. TestRenderedControlPlane renders them.
func TestSameTwice(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.Kubernetes, inputs.OpenShift} {
		in := manifests.Input{Config: config(t, same), Profile: profile, ClusterID: "6f9c", InfraID: "sno-x7k2p"}
		list := fixture.Must(manifests.Generate(in))
		in.Config = config(t, same)
		fixture.Equal(t, string(profile), list, fixture.Must(manifests.Generate(in)))
	}
}

// The topologies are those of the policy, and the router is pinned if its pool is the control plane's (R-TOP-5,
// R-ING-3, R-ING-5).
func TestTopology(t *testing.T) {
	type row struct {
		infrastructure configv1.TopologyMode
		placement      configv1.DefaultPlacement
		schedulable    bool
	}
	single, many := configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode
	for name, test := range map[string]struct {
		policy   topology.Policy
		workers  string
		external bool
		want     row
	}{
		"alone":                           {"", "0", false, row{single, configv1.DefaultPlacementControlPlane, true}},
		"one worker":                      {"", "1", false, row{single, configv1.DefaultPlacementControlPlane, false}},
		"three workers":                   {"", "3", false, row{single, configv1.DefaultPlacementControlPlane, false}},
		"three workers by number":         {topology.PolicyWorkerCount, "3", false, row{many, configv1.DefaultPlacementWorkers, false}},
		"three workers, placement":        {topology.PolicyDefaultPlacement, "3", false, row{many, configv1.DefaultPlacementControlPlane, false}},
		"external, one worker, placement": {topology.PolicyDefaultPlacement, "1", true, row{single, configv1.DefaultPlacementWorkers, false}},
		"one worker by number":            {topology.PolicyWorkerCount, "1", false, row{single, configv1.DefaultPlacementWorkers, false}},
		"alone, by number":                {topology.PolicyWorkerCount, "0", false, row{single, configv1.DefaultPlacementWorkers, true}},
		"alone, placement":                {topology.PolicyDefaultPlacement, "0", false, row{single, configv1.DefaultPlacementControlPlane, true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, func(text string) string {
				if test.external {
					text = strings.Replace(text, "none: {}", "external: {platformName: acme}", 1)
				}
				return strings.Replace(text, "replicas: 0", "replicas: "+test.workers, 1)
			})
			list := fixture.Must(manifests.Generate(manifests.Input{Config: c, Policy: test.policy, Profile: inputs.Kubernetes, InfraID: "sno-x7k2p"}))
			cluster := read(t, list)
			status := cluster.Infrastructure.Status
			got := row{status.InfrastructureTopology, cluster.Ingress.Status.DefaultPlacement, cluster.Scheduler.Spec.MastersSchedulable}
			if got != test.want || status.ControlPlaneTopology != single {
				t.Errorf("got %+v and %s, want %+v", got, status.ControlPlaneTopology, test.want)
			}
			if test.external != (status.PlatformStatus.Type == configv1.ExternalPlatformType) || (test.external && cluster.Infrastructure.Spec.PlatformSpec.External.PlatformName != "acme") {
				t.Errorf("platform %+v", cluster.Infrastructure)
			}
		})
	}
}

// All honoured fields of the install-config are in a manifest.
func TestContents(t *testing.T) {
	c := config(t, func(text string) string {
		return text + "fips: true\nfeatureSet: TechPreviewNoUpgrade\ncpuPartitioningMode: AllNodes\ncapabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress]}\n"
	})
	bundle, _, err := cert.GenerateSelfSignedCertKey("ca.example.com", nil, nil)
	fixture.NoError(t, err)
	c.AdditionalTrustBundle = string(bundle)
	list := fixture.Must(manifests.Generate(manifests.Input{Config: c, Profile: inputs.OpenShift, ClusterID: "6f9c0e56", InfraID: "sno-x7k2p"}))
	texts := map[string]string{}
	for _, f := range list {
		texts[f.Path] = string(f.Content)
	}
	for file, wants := range map[string][]string{
		"cluster-infrastructure-02-config.yml":           {"apiServerURL: https://api.sno.example.com:6443", "apiServerInternalURI: https://api-int.sno.example.com:6443", "infrastructureName: sno-x7k2p", "cpuPartitioning: AllNodes"},
		"cluster-dns-02-config.yml":                      {"baseDomain: sno.example.com"},
		"cluster-ingress-02-config.yml":                  {"domain: apps.sno.example.com"},
		"cluster-network-02-config.yml":                  {"cidr: 10.128.0.0/14", "hostPrefix: 23", "- 172.30.0.0/16", "networkType: OVNKubernetes"},
		"cluster-proxy-01-config.yaml":                   {"httpsProxy: http://proxy.example.com:3128", "name: user-ca-bundle", "noProxy: .example.org,198.51.100.0/24\n", "noProxy: .example.org,198.51.100.0/24,127.0.0.1,localhost,.svc,.cluster.local,api-int.sno.example.com,192.0.2.0/24,10.128.0.0/14,172.30.0.0/16\n"},
		"99_feature-gate.yaml":                           {"featureSet: TechPreviewNoUpgrade"},
		"cluster-config.yaml":                            {"bootstrapInPlace:", `pullSecret: ""`},
		"cvo-overrides.yaml":                             {"clusterID: 6f9c0e56", "baselineCapabilitySet: None", "- Ingress"},
		"openshift-config-secret-pull-secret.yaml":       {"kubernetes.io/dockerconfigjson", "namespace: openshift-config"},
		"user-ca-bundle-config.yaml":                     {"-----BEGIN CERTIFICATE-----"},
		"image-digest-mirror-set.yaml":                   {"source: registry.example.com/release", "- mirror.example.com:5000/release", "mirrorSourcePolicy: NeverContactSource"},
		"99_openshift-machineconfig_99-master-ssh.yaml":  {"machineconfiguration.openshift.io/role: master", "ssh-ed25519 "},
		"99_openshift-machineconfig_99-worker-ssh.yaml":  {"machineconfiguration.openshift.io/role: worker", "ssh-ed25519 "},
		"99_openshift-machineconfig_99-master-fips.yaml": {"fips: true"},
		"99_openshift-machineconfig_99-worker-fips.yaml": {"fips: true"},
		"cluster-scheduler-02-config.yml":                {"mastersSchedulable: true"},
	} {
		for _, want := range wants {
			if !strings.Contains(texts[file], want) {
				t.Errorf("%s has no %q:\n%s", file, want, texts[file])
			}
		}
		delete(texts, file)
	}
	for file, text := range texts {
		if strings.Contains(text, "dXNlcjpwYXNz") {
			t.Errorf("%s has the pull secret", file)
		}
	}
	// Without a proxy, only policy Always sets the bundle.
	c.Proxy = nil
	for policy, want := range map[installconfig.TrustBundlePolicy]bool{installconfig.TrustBundleProxyOnly: false, installconfig.TrustBundleAlways: true} {
		c.AdditionalTrustBundlePolicy = policy
		list := fixture.Must(manifests.Generate(manifests.Input{Config: c, Profile: inputs.OpenShift, InfraID: "sno-x7k2p"}))
		if got := read(t, list).Proxy.Spec.TrustedCA.Name == "user-ca-bundle"; got != want {
			t.Errorf("%s: bundle set: %t", policy, got)
		}
	}
}

func TestUserManifests(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	generated := fixture.Must(manifests.Generate(manifests.Input{Config: config(t, same), Profile: inputs.Kubernetes, InfraID: "sno-x7k2p"}))
	const quota = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
	user, skipped, err := manifests.ReadUserManifests("manifests", fstest.MapFS{
		"a.yaml": file(quota + "---\n" + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}`), "b.json": file(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c"}}`),
		"README.md": file("hello"), ".gitkeep": file(""),
	})
	fixture.NoError(t, err)
	fixture.Equal(t, "skipped", []string{"manifests/.gitkeep: skipped: not a manifest", "manifests/README.md: skipped: not a manifest"}, skipped)
	merged, err := manifests.Merge(generated, user)
	if err != nil || len(merged) != len(generated)+2 {
		t.Fatalf("%d files of %d and 2: %v", len(merged), len(generated), err)
	}
	for name, test := range map[string]struct {
		folder fstest.MapFS
		is     error
		want   string
	}{
		"another DNS": {fstest.MapFS{"dns.yaml": file("apiVersion: config.openshift.io/v1\nkind: DNS\nmetadata: {name: cluster}\nspec: {baseDomain: x.org}\n")}, manifests.ErrConflict, "DNS.config.openshift.io /cluster: defined by two manifests: cluster-dns-02-config.yml and manifests/dns.yaml"},
		"a copy":      {fstest.MapFS{"a.yaml.orig": file(quota)}, manifests.ErrManifest, "manifests/a.yaml.orig: "},
		"a folder":    {fstest.MapFS{"more/a.yaml": file(quota)}, manifests.ErrManifest, "manifests/more: "},
		"no kind":     {fstest.MapFS{"a.yaml": file("a: b\n")}, manifests.ErrManifest, "manifests/a.yaml: not a manifest of Kubernetes objects: document 1 needs apiVersion, kind and metadata.name"},
		"no YAML":     {fstest.MapFS{"a.yaml": file("a: [")}, manifests.ErrManifest, "manifests/a.yaml"},
		"duplicate":   {fstest.MapFS{"a.yaml": file(quota), "b.yaml": file(quota)}, manifests.ErrConflict, "ConfigMap b/a: defined by two manifests: manifests/a.yaml and manifests/b.yaml"},
		"a list":      {fstest.MapFS{"a.yaml": file("apiVersion: v1\nkind: List\nitems: []\n")}, manifests.ErrManifest, "replace a List by its items"},
		"empty":       {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			user, _, err := manifests.ReadUserManifests("manifests", test.folder)
			if err == nil {
				_, err = manifests.Merge(generated, user)
			}
			if !errors.Is(err, test.is) || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestOVNKubernetes(t *testing.T) {
	const network = "apiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {defaultNetwork: {ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.70.0.0/16}}}}\n"
	for name, test := range map[string]struct {
		text, want string
		is         error
	}{
		"a manifest": {network, "100.70.0.0/16", nil},
		"another":    {"apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\n", "", nil},
		"a number":   {strings.Replace(network, "100.70.0.0/16", "7", 1), "", manifests.ErrManifest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manifests.OVNKubernetes([]files.File{{Path: "manifests/network.yaml", Content: []byte(test.text)}})
			if !errors.Is(err, test.is) || (got == nil) != (test.want == "") || (got != nil && got.IPv4.InternalJoinSubnet != test.want) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

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
