// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

// change adds a file to a golden input, or replaces a text in it; without content it removes the file.
type change struct{ file, replace, with string }

func add(file, content string) change { return change{file: file, with: content} }

func remove(file string) change { return change{file: file} }

func changed(t *testing.T, folder string, changes ...change) fstest.MapFS {
	t.Helper()
	input := fstest.MapFS{}
	golden := os.DirFS(goldenInput + folder)
	entries, err := fs.ReadDir(golden, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(golden, entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		input[entry.Name()] = &fstest.MapFile{Data: content}
	}
	for _, change := range changes {
		switch {
		case change.replace != "":
			content := string(input[change.file].Data)
			if strings.Count(content, change.replace) != 1 {
				t.Fatalf("%s has %q %d times", change.file, change.replace, strings.Count(content, change.replace))
			}
			input[change.file] = &fstest.MapFile{Data: []byte(strings.Replace(content, change.replace, change.with, 1))}
		case change.with == "":
			delete(input, change.file)
		default:
			input[change.file] = &fstest.MapFile{Data: []byte(change.with)}
		}
	}
	return input
}

func brief(faults document.Faults) []string {
	var lines []string
	for _, fault := range faults {
		place := ""
		if fault.File != "" {
			place = fmt.Sprintf("%s:%d ", fault.File, fault.Line)
		}
		lines = append(lines, fmt.Sprintf("%s%s %s (%s)", place, fault.Object, fault.Problem.Field, strings.TrimPrefix(string(fault.Problem.Type), "FieldValue")))
	}
	return lines
}

func faultsOf(t *testing.T, input fs.FS) document.Faults {
	t.Helper()
	cluster, err := Read(input, testNow)
	if err == nil {
		return nil
	}
	if cluster != nil {
		t.Error("a Cluster in addition to an error")
	}
	var faults document.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("not Faults: %v", err)
	}
	return faults
}

const apiServer = "apiVersion: config.openshift.io/v1\nkind: APIServer\nmetadata:\n  name: cluster\n"

// faultsTest is a folder, by default that of one node, with changes, and its faults.
type faultsTest struct {
	name, folder string
	changes      []change
	want         []string
}

func checkFaults(t *testing.T, tests ...faultsTest) {
	t.Helper()
	t.Parallel()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			faults := faultsOf(t, changed(t, cmp.Or(test.folder, "one-node"), test.changes...))
			if diff := gocmp.Diff(test.want, brief(faults)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%v", diff, faults)
			}
			for _, fault := range faults {
				if fault.Problem.Detail == "" || strings.HasSuffix(fault.Error(), "; ") {
					t.Errorf("no sentence: %+v", fault)
				}
			}
		})
	}
}

// R-REN-2, R-REN-3.
func TestFaults(t *testing.T) {
	checkFaults(t, []faultsTest{
		{name: "missing", changes: []change{remove("cluster-oauth.yaml"), remove("cluster-image.yaml")},
			want: []string{"Image cluster  (Required)", "OAuth cluster  (Required)"}},
		{name: "duplicate", changes: []change{{"cluster-oauth.yaml", "spec: {}", "spec: {}\n---\n# again\napiVersion: config.openshift.io/v1\n" +
			"kind: OAuth\nmetadata: {name: cluster}\nspec: {}"}},
			want: []string{"cluster-oauth.yaml:8 OAuth cluster  (Duplicate)"}},
		{name: "conflict", changes: []change{add("sub/other.yml", apiServer+"spec:\n  audit:\n    profile: None\n")},
			want: []string{"sub/other.yml:6 APIServer cluster spec.audit (Duplicate)"}},
		{name: "conflict of fields", changes: []change{
			{"cluster-apiserver.yaml", "spec: {}", "spec:\n  audit: {profile: Default}"},
			add("zz.json", "{\n\t\"apiVersion\": \"config.openshift.io/v1\",\n\t\"kind\": \"APIServer\",\n\t\"metadata\": {\"name\": \"cluster\"},\n"+
				"\t\"spec\": {\n\t\t\"audit\": {\n\t\t\t\"profile\": \"None\"}}}\n")},
			want: []string{"zz.json:7 APIServer cluster spec.audit.profile (Duplicate)"}},
		{name: "unknown field", changes: []change{{"cluster-network-02-config.yml", "    hostPrefix: 23", "    hostPrefix: 23\n    hostprefix: 24"}},
			want: []string{"cluster-network-02-config.yml:9 Network cluster spec.clusterNetwork[0].hostprefix (Forbidden)"}},
		{name: "field given twice", changes: []change{{"cluster-dns-02-config.yml", "status: {}", "spec: {}"}},
			want: []string{"cluster-dns-02-config.yml:7  spec (Duplicate)"}},
		{name: "wrong type", changes: []change{{"cluster-network-02-config.yml", "hostPrefix: 23", "hostPrefix: twenty"}},
			want: []string{"cluster-network-02-config.yml:8 Network cluster spec.clusterNetwork[0].hostPrefix (TypeInvalid)"}},
		{name: "unknown field of a Secret", changes: []change{add("s.yaml", "---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndate: {}\n")},
			want: []string{"s.yaml:6 Secret b/a date (Forbidden)"}},
		{name: "in a List", changes: []change{add("l.yaml", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"+
			"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b, namespace: c}\n  data: {x: 1}\n")},
			want: []string{"l.yaml:6 ConfigMap a metadata.namespace (Required)", "l.yaml:10 ConfigMap c/b data.x (TypeInvalid)"}},
		{name: "unknown kind", changes: []change{{"cluster-oauth.yaml", "kind: OAuth", "kind: Oauth"}},
			want: []string{"cluster-oauth.yaml:2 Oauth cluster kind (Invalid)", "OAuth cluster  (Required)"}},
		{name: "unknown version", changes: []change{{"cluster-oauth.yaml", "config.openshift.io/v1", "config.openshift.io/v2"}},
			want: []string{"cluster-oauth.yaml:2 OAuth cluster kind (Invalid)", "OAuth cluster  (Required)"}},
		{name: "other name", changes: []change{{"cluster-oauth.yaml", "name: cluster", "name: default"}},
			want: []string{"cluster-oauth.yaml:4 OAuth default metadata.name (Invalid)"}},
		{name: "the rest is read after a syntax error", changes: []change{
			{"cluster-dns-02-config.yml", "spec:\n", "spec: [\n"},
			{"cluster-oauth.yaml", "spec: {}", "spec: {}\n...\nkind: Lost"},
			add("text.yaml", "only text\n"), add("nothing.yaml", "# nothing\n"), add("kind.yaml", "a: b\n")},
			want: []string{
				"cluster-dns-02-config.yml:5   (TypeInvalid)", "cluster-oauth.yaml:7   (TypeInvalid)", "kind.yaml:1   (Required)",
				"text.yaml:1   (TypeInvalid)", "DNS cluster  (Required)", "OAuth cluster  (Required)"}},

		{name: "networks overlap", changes: []change{{"cluster-network-02-config.yml", "172.30.0.0/16", "10.129.0.0/16"}},
			want: []string{"cluster-network-02-config.yml:13 Network cluster spec.serviceNetwork[0] (Invalid)"}},
		{name: "IPv6 networks overlap", changes: []change{
			{"cluster-network-02-config.yml", "    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: fd01::/48\n    hostPrefix: 64"},
			{"cluster-network-02-config.yml", "172.30.0.0/16", "172.30.0.0/16\n  - fd01:0:0:7::/112"},
			{"nodes.yaml", "  - type: Hostname", "  - type: InternalIP\n    address: fd00::1\n  - type: Hostname"}},
			want: []string{"cluster-network-02-config.yml:16 Network cluster spec.serviceNetwork[1] (Invalid)"}},
		{name: "a node in the cluster network", changes: []change{{"nodes.yaml", "192.168.126.10", "10.130.0.1"}},
			want: []string{"cluster-network-02-config.yml:7 Network cluster spec.clusterNetwork[0].cidr (Invalid)"}},
		{name: "machines in the service network", changes: []change{
			{"cluster-infrastructure-02-config.yml", "  platformSpec:\n    type: None", "  platformSpec:\n    type: BareMetal\n    baremetal:\n      machineNetworks: [172.30.128.0/24]"}},
			want: []string{"cluster-network-02-config.yml:13 Network cluster spec.serviceNetwork[0] (Invalid)"}},
		{name: "no room", folder: "three-nodes", changes: []change{{"cluster-network-02-config.yml", "10.128.0.0/14", "10.128.0.0/22"}},
			want: []string{"cluster-network-02-config.yml:6 Network cluster spec.clusterNetwork (Invalid)"}},
		{name: "a node's network larger than the whole", changes: []change{{"cluster-network-02-config.yml", "10.128.0.0/14", "10.128.0.0/24"}},
			want: []string{"cluster-network-02-config.yml:8 Network cluster spec.clusterNetwork[0].hostPrefix (Invalid)"}},
		{name: "hostPrefix without room for pods", changes: []change{{"cluster-network-02-config.yml", "hostPrefix: 23", "hostPrefix: 31"}},
			want: []string{"cluster-network-02-config.yml:8 Network cluster spec.clusterNetwork[0].hostPrefix (Invalid)"}},
		{name: "hostPrefix of IPv6", changes: []change{
			{"cluster-network-02-config.yml", "    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: fd01::/48\n    hostPrefix: 80"}},
			want: []string{"cluster-network-02-config.yml:10 Network cluster spec.clusterNetwork[1].hostPrefix (Invalid)"}},
		{name: "too many node networks of IPv6", changes: []change{
			{"cluster-network-02-config.yml", "    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: fd00::/40\n    hostPrefix: 64"}},
			want: []string{"cluster-network-02-config.yml:10 Network cluster spec.clusterNetwork[1].hostPrefix (Invalid)"}},
		{name: "invalid ranges", changes: []change{{"cluster-network-02-config.yml", "10.128.0.0/14", "10.128.1.0/14"},
			{"cluster-network-02-config.yml", "172.30.0.0/16", "172.30.0.0"},
			{"cluster-network-02-config.yml", "policy: {}", "policy: {allowedCIDRs: [all]}\n  serviceNodePortRange: many"}},
			want: []string{"cluster-network-02-config.yml:7 Network cluster spec.clusterNetwork[0].cidr (Invalid)",
				"cluster-network-02-config.yml:10 Network cluster spec.externalIP.policy.allowedCIDRs[0] (Invalid)",
				"cluster-network-02-config.yml:11 Network cluster spec.serviceNodePortRange (Invalid)",
				"cluster-network-02-config.yml:14 Network cluster spec.serviceNetwork[0] (Invalid)"}},
		{name: "families", changes: []change{{"cluster-network-02-config.yml", "172.30.0.0/16", "fd02::/112"}},
			want: []string{"cluster-network-02-config.yml:13 Network cluster spec.serviceNetwork[0] (Invalid)",
				"cluster-network-02-config.yml:13 Network cluster spec.serviceNetwork[0] (Invalid)"}},
		{name: "two service networks of one family", changes: []change{{"cluster-network-02-config.yml", "172.30.0.0/16", "172.30.0.0/16\n  - 172.31.0.0/16"}},
			want: []string{"cluster-network-02-config.yml:14 Network cluster spec.serviceNetwork[1] (Invalid)"}},
		{name: "no networks", changes: []change{add("cluster-network-02-config.yml", strings.Replace(apiServer, "APIServer", "Network", 1)+"spec: {}\n")},
			want: []string{"cluster-network-02-config.yml:5 Network cluster spec.clusterNetwork (Required)",
				"cluster-network-02-config.yml:5 Network cluster spec.serviceNetwork (Required)"}},
		{name: "status of the network", changes: []change{{"cluster-network-02-config.yml", "status: {}", "status: {serviceNetwork: [172.31.0.0/16], " +
			"clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 24}], migration: {networkType: OpenShiftSDN}}"}},
			want: []string{"cluster-network-02-config.yml:14 Network cluster status.clusterNetwork (Invalid)",
				"cluster-network-02-config.yml:14 Network cluster status.migration (Forbidden)",
				"cluster-network-02-config.yml:14 Network cluster status.serviceNetwork (Invalid)"}},

		{name: "no control-plane node", changes: []change{remove("nodes.yaml")}, want: []string{"Node  (Required)"}},
		{name: "no address", changes: []change{{"nodes.yaml", "type: InternalIP", "type: ExternalIP"}},
			want: []string{"nodes.yaml:10 Node master-0 status.addresses (Required)"}},
		{name: "impossible addresses", changes: []change{{"nodes.yaml", "192.168.126.10", "127.0.0.1"}, {"nodes.yaml", "type: Hostname", "type: InternalIP"}},
			want: []string{"nodes.yaml:11 Node master-0 status.addresses[0] (Invalid)",
				"nodes.yaml:14 Node master-0 status.addresses[1].address (Invalid)"}},
		{name: "one address of two nodes", folder: "three-nodes", changes: []change{{"nodes.yaml", "192.168.126.12", "192.168.126.11"}},
			want: []string{"nodes.yaml:41 Node master-2 status.addresses[0] (Duplicate)"}},
		{name: "name of a node", changes: []change{{"nodes.yaml", "  name: master-0", "  name: Master_0"}},
			want: []string{"nodes.yaml:4 Node Master_0 metadata.name (Invalid)"}},
		{name: "topology of three on one", changes: []change{{"cluster-infrastructure-02-config.yml", "controlPlaneTopology: SingleReplica", "controlPlaneTopology: HighlyAvailable"}},
			want: []string{"cluster-infrastructure-02-config.yml:13 Infrastructure cluster status.controlPlaneTopology (Invalid)"}},
		{name: "topology of one on three", folder: "three-nodes", changes: []change{{"cluster-infrastructure-02-config.yml", "controlPlaneTopology: HighlyAvailable", "controlPlaneTopology: SingleReplica"}},
			want: []string{"cluster-infrastructure-02-config.yml:13 Infrastructure cluster status.controlPlaneTopology (Invalid)"}},
		{name: "topologies that are not rendered or unknown", changes: []change{
			{"cluster-infrastructure-02-config.yml", "controlPlaneTopology: SingleReplica", "controlPlaneTopology: DualReplica"},
			{"cluster-infrastructure-02-config.yml", "infrastructureTopology: SingleReplica", "infrastructureTopology: Some"}},
			want: []string{"cluster-infrastructure-02-config.yml:13 Infrastructure cluster status.controlPlaneTopology (Forbidden)",
				"cluster-infrastructure-02-config.yml:17 Infrastructure cluster status.infrastructureTopology (NotSupported)"}},
		{name: "an Infrastructure without status", changes: []change{add("cluster-infrastructure-02-config.yml", strings.Replace(apiServer, "APIServer", "Infrastructure", 1)+"spec: {}\n")},
			want: []string{"cluster-infrastructure-02-config.yml:1 Infrastructure cluster status.apiServerInternalURI (Invalid)",
				"cluster-infrastructure-02-config.yml:1 Infrastructure cluster status.apiServerURL (Invalid)",
				"cluster-infrastructure-02-config.yml:1 Infrastructure cluster status.controlPlaneTopology (Required)",
				"cluster-infrastructure-02-config.yml:1 Infrastructure cluster status.infrastructureName (Required)",
				"cluster-infrastructure-02-config.yml:1 Infrastructure cluster status.infrastructureTopology (Required)"}},
	}...)
}

// Configurations that only an operator can apply are refused, and similar ones are not (R-REN-11, R-REN-12).
func TestRestrictions(t *testing.T) {
	const authentication, image = "cluster-authentication.yaml", "cluster-image.yaml"
	registry := func(spec string) change {
		return add("registry.yaml", "apiVersion: imageregistry.operator.openshift.io/v1\nkind: Config\nmetadata: {name: cluster}\nspec: "+spec+"\n")
	}
	oidc := "spec:\n  type: OIDC\n  oidcProviders:\n  - name: keycloak\n    issuer:\n      issuerURL: https://id.example.com/realms/a\n      audiences: [cluster]\n" +
		"      issuerCertificateAuthority: {name: %s}\n    claimMappings:\n      username: {claim: sub}\n"
	webhook := "spec:\n  type: %s\n  webhookTokenAuthenticator:\n    kubeConfig: {name: webhook}"
	kubeconfig := func(content string) change {
		return add("webhook.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: webhook, namespace: openshift-config}\nstringData:\n  kubeConfig: |\n    "+
			strings.ReplaceAll(content, "\n", "\n    ")+"\n")
	}
	goodKubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'https://hook.example.com'}}]\n" +
		"users: [{name: a, user: {token: secret}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]"
	checkFaults(t, []faultsTest{
		{name: "identity providers", changes: []change{{"cluster-oauth.yaml", "spec: {}", "spec:\n  identityProviders:\n  - name: a\n    type: HTPasswd\n    htpasswd: {fileData: {name: a}}"}},
			want: []string{"cluster-oauth.yaml:6 OAuth cluster spec.identityProviders (Forbidden)"}},
		{name: "no authentication", changes: []change{{authentication, "spec: {}", "spec: {type: None}"}}},
		{name: "OAuth without providers", changes: []change{{authentication, "spec: {}", "spec: {type: IntegratedOAuth}"}}},
		{name: "unknown type", changes: []change{{authentication, "spec: {}", "spec: {type: LDAP}"}},
			want: []string{"cluster-authentication.yaml:5 Authentication cluster spec.type (NotSupported)"}},
		{name: "OIDC", changes: []change{{authentication, "spec: {}", fmt.Sprintf(oidc, `""`)}}},
		{name: "OIDC with a CA that does not exist", changes: []change{{authentication, "spec: {}", fmt.Sprintf(oidc, "ca")}},
			want: []string{"cluster-authentication.yaml:12 Authentication cluster spec.oidcProviders[0].issuer.issuerCertificateAuthority.name (NotFound)"}},
		{name: "OIDC with a query", changes: []change{{authentication, "spec: {}", strings.Replace(fmt.Sprintf(oidc, `""`), "realms/a", "realms?a", 1)}},
			want: []string{"cluster-authentication.yaml:10 Authentication cluster spec.oidcProviders[0].issuer.issuerURL (Invalid)"}},
		{name: "OIDC with a fragment", changes: []change{{authentication, "spec: {}", strings.Replace(fmt.Sprintf(oidc, `""`), "realms/a", "realms#a", 1)}},
			want: []string{"cluster-authentication.yaml:10 Authentication cluster spec.oidcProviders[0].issuer.issuerURL (Invalid)"}},
		{name: "OIDC with a user", changes: []change{{authentication, "spec: {}", strings.Replace(fmt.Sprintf(oidc, `""`), "https://", "https://a@", 1)}},
			want: []string{"cluster-authentication.yaml:10 Authentication cluster spec.oidcProviders[0].issuer.issuerURL (Invalid)"}},
		{name: "CORS origins", changes: []change{{"cluster-apiserver.yaml", "spec: {}", "spec:\n  additionalCORSAllowedOrigins:\n" +
			"  - //a\\.example\\.com(:|$)\n  - ^app:a$\n  - ^https\n  - a.example.com$\n  - \"//(a:\""}},
			want: []string{"cluster-apiserver.yaml:9 APIServer cluster spec.additionalCORSAllowedOrigins[2] (Invalid)",
				"cluster-apiserver.yaml:10 APIServer cluster spec.additionalCORSAllowedOrigins[3] (Invalid)",
				"cluster-apiserver.yaml:11 APIServer cluster spec.additionalCORSAllowedOrigins[4] (Invalid)"}},
		{name: "httpProxy by https", changes: []change{{"cluster-proxy-01-config.yaml", "spec:\n", "spec:\n  httpProxy: https://proxy.example.com:3128\n  httpsProxy: https://proxy.example.com:3128\n"}},
			want: []string{"cluster-proxy-01-config.yaml:6 Proxy cluster spec.httpProxy (Invalid)"}},
		{name: "httpsProxy by SOCKS", changes: []change{{"cluster-proxy-01-config.yaml", "spec:\n", "spec:\n  httpsProxy: socks5://proxy.example.com:3128\n"}},
			want: []string{"cluster-proxy-01-config.yaml:6 Proxy cluster spec.httpsProxy (Invalid)"}},
		{name: "OIDC without a provider", changes: []change{{authentication, "spec: {}", "spec: {type: OIDC}"}},
			want: []string{"cluster-authentication.yaml:5 Authentication cluster spec.oidcProviders (Required)"}},
		{name: "OIDC of another type", changes: []change{{authentication, "spec: {}", strings.Replace(fmt.Sprintf(oidc, `""`), "type: OIDC", "type: None", 1)}},
			want: []string{"cluster-authentication.yaml:7 Authentication cluster spec.oidcProviders (Invalid)"}},
		{name: "half a provider", changes: []change{{authentication, "spec: {}", "spec:\n  type: OIDC\n  oidcProviders:\n  - issuer:\n      issuerURL: http://id.example.com\n" +
			"    claimMappings:\n      username: {prefixPolicy: Prefix}\n"}},
			want: []string{
				"cluster-authentication.yaml:8 Authentication cluster spec.oidcProviders[0].issuer.audiences (Required)",
				"cluster-authentication.yaml:9 Authentication cluster spec.oidcProviders[0].issuer.issuerURL (Invalid)",
				"cluster-authentication.yaml:11 Authentication cluster spec.oidcProviders[0].claimMappings.username (Invalid)",
				"cluster-authentication.yaml:11 Authentication cluster spec.oidcProviders[0].claimMappings.username.prefix (Invalid)"}},
		{name: "a webhook", changes: []change{{authentication, "spec: {}", fmt.Sprintf(webhook, "None")}, kubeconfig(goodKubeconfig)}},
		{name: "a webhook of another type", changes: []change{{authentication, "spec: {}", fmt.Sprintf(webhook, `""`)}, kubeconfig(goodKubeconfig)},
			want: []string{"cluster-authentication.yaml:7 Authentication cluster spec.webhookTokenAuthenticator (Forbidden)"}},
		{name: "a webhook without Secret", changes: []change{{authentication, "spec: {}", fmt.Sprintf(webhook, "None")}},
			want: []string{"cluster-authentication.yaml:8 Authentication cluster spec.webhookTokenAuthenticator.kubeConfig.name (NotFound)"}},
		{name: "a webhook with files", changes: []change{{authentication, "spec: {}", fmt.Sprintf(webhook, "None")},
			kubeconfig(strings.Replace(goodKubeconfig, "token: secret", "tokenFile: /etc/token", 1))},
			want: []string{"webhook.yaml:5 Secret openshift-config/webhook stringData.kubeConfig (Invalid)"}},
		{name: "a webhook without a context", changes: []change{{authentication, "spec: {}", fmt.Sprintf(webhook, "None")}, kubeconfig("kind: Config")},
			want: []string{"webhook.yaml:5 Secret openshift-config/webhook stringData.kubeConfig (Invalid)"}},
		{name: "an issuer that is no URL", changes: []change{{authentication, "spec: {}", "spec: {serviceAccountIssuer: 'https://[oidc'}"}},
			want: []string{"cluster-authentication.yaml:5 Authentication cluster spec.serviceAccountIssuer (Invalid)"}},
		{name: "the old webhooks and the operator's metadata", changes: []change{{authentication, "spec: {}", "spec:\n  webhookTokenAuthenticators:\n  - kubeConfig: {name: a}\n" +
			"status: {integratedOAuthMetadata: {name: oauth-openshift}}"}},
			want: []string{"cluster-authentication.yaml:6 Authentication cluster spec.webhookTokenAuthenticators (Forbidden)",
				"cluster-authentication.yaml:8 Authentication cluster status.integratedOAuthMetadata (Forbidden)"}},
		{name: "metadata of an OAuth server elsewhere", changes: []change{{authentication, "spec: {}", "spec: {oauthMetadata: {name: metadata}}"},
			add("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: metadata, namespace: openshift-config}\ndata: {oauthMetadata: '{}'}\n")}},
		{name: "metadata without a key", changes: []change{{authentication, "spec: {}", "spec: {oauthMetadata: {name: metadata}}"},
			add("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: metadata, namespace: openshift-config}\ndata: {other: '{}'}\n")},
			want: []string{"m.yaml:4 ConfigMap openshift-config/metadata data.oauthMetadata (Required)"}},

		{name: "a registry that runs", changes: []change{registry("{managementState: Managed, defaultRoute: true, routes: [{name: a, hostname: r.example.com}]}")},
			want: []string{"registry.yaml:4 Config cluster spec.defaultRoute (Forbidden)",
				"registry.yaml:4 Config cluster spec.managementState (Forbidden)",
				"registry.yaml:4 Config cluster spec.routes[0].hostname (Forbidden)"}},
		{name: "a registry whose names Image has", changes: []change{registry("{managementState: Managed, defaultRoute: true}"),
			{image, "spec: {}", "spec: {externalRegistryHostnames: [default-route-openshift-image-registry.apps.sno.example.com]}\n" +
				"status: {internalRegistryHostname: 'image-registry.openshift-image-registry.svc:5000'}"}}},
		{name: "a registry that is removed", changes: []change{registry("{managementState: Removed, defaultRoute: true}")}},

		{name: "encryption by KMS", changes: []change{{"cluster-apiserver.yaml", "spec: {}", "spec:\n  encryption:\n    type: KMS\n    kms: {type: AWS, aws: {keyARN: a, region: b}}"}},
			want: []string{"cluster-apiserver.yaml:7 APIServer cluster spec.encryption.type (Forbidden)",
				"cluster-apiserver.yaml:8 APIServer cluster spec.encryption.kms (Forbidden)"}},
		{name: "unknown values", changes: []change{
			{"cluster-apiserver.yaml", "spec: {}", "spec:\n  encryption: {type: rot13}\n  audit:\n    profile: All\n    customRules:\n    - {group: a, profile: None}\n    - {group: b, profile: Most}\n" +
				"  tlsSecurityProfile:\n    type: Custom\n    custom: {minTLSVersion: VersionTLS9}"},
			{"cluster-scheduler-02-config.yml", "mastersSchedulable: true", "profile: Best"}, {"cluster-node.yaml", "spec: {}", "spec: {workerLatencyProfile: Fast}"}},
			want: []string{"cluster-apiserver.yaml:6 APIServer cluster spec.encryption.type (NotSupported)",
				"cluster-apiserver.yaml:8 APIServer cluster spec.audit.profile (NotSupported)",
				"cluster-apiserver.yaml:11 APIServer cluster spec.audit.customRules[1].profile (NotSupported)",
				"cluster-apiserver.yaml:14 APIServer cluster spec.tlsSecurityProfile.custom.minTLSVersion (NotSupported)",
				"cluster-node.yaml:5 Node cluster spec.workerLatencyProfile (NotSupported)",
				"cluster-scheduler-02-config.yml:6 Scheduler cluster spec.profile (NotSupported)"}},
		{name: "feature gates one by one", changes: []change{{"99_feature-gate.yaml", "spec: {}", "spec:\n  featureSet: CustomNoUpgrade\n  customNoUpgrade:\n    enabled: [A, B]"}},
			want: []string{"99_feature-gate.yaml:6 FeatureGate cluster spec.featureSet (Forbidden)",
				"99_feature-gate.yaml:7 FeatureGate cluster spec.customNoUpgrade (Forbidden)"}},
		{name: "unknown feature set", changes: []change{{"99_feature-gate.yaml", "spec: {}", "spec: {featureSet: All}"}},
			want: []string{"99_feature-gate.yaml:5 FeatureGate cluster spec.featureSet (NotSupported)"}},
		{name: "gates of two releases", changes: []change{{"99_feature-gate.yaml", "spec: {}",
			"spec: {}\nstatus:\n  featureGates:\n  - {version: 4.20.1, enabled: [], disabled: []}\n  - {version: 4.21.0, enabled: [], disabled: []}"}},
			want: []string{"99_feature-gate.yaml:7 FeatureGate cluster status.featureGates (TooMany)"}},
		{name: "a scheduler policy", changes: []change{{"cluster-scheduler-02-config.yml", `name: ""`, "name: policy"}},
			want: []string{"cluster-scheduler-02-config.yml:7 Scheduler cluster spec.policy (Forbidden)"}},

		{name: "missing references", changes: []change{
			{"cluster-apiserver.yaml", "spec: {}", "spec:\n  clientCA: {name: users}\n  servingCerts:\n    namedCertificates:\n    - servingCertificate: {name: a}\n" +
				"    - servingCertificate: {name: \"\"}\n      names: [x]"},
			{"cluster-proxy-01-config.yaml", `name: ""`, "name: roots"}, {"cluster-proxy-01-config.yaml", "spec:\n", "spec:\n  httpProxy: proxy\n"}},
			want: []string{"cluster-apiserver.yaml:6 APIServer cluster spec.clientCA.name (NotFound)",
				"cluster-apiserver.yaml:9 APIServer cluster spec.servingCerts.namedCertificates[0].servingCertificate.name (NotFound)",
				"cluster-apiserver.yaml:10 APIServer cluster spec.servingCerts.namedCertificates[1].servingCertificate.name (Required)",
				"cluster-proxy-01-config.yaml:6 Proxy cluster spec.httpProxy (Invalid)",
				"cluster-proxy-01-config.yaml:8 Proxy cluster spec.trustedCA.name (NotFound)"}},
	}...)
}

// Faults of all kinds are reported together, in the order of files and lines.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	faults := faultsOf(t, changed(t, "one-node", remove("cluster-oauth.yaml"),
		change{"cluster-network-02-config.yml", "172.30.0.0/16", "10.129.0.0/16"},
		change{"cluster-apiserver.yaml", "spec: {}", "spec:\n  clientca: {name: a}\n  encryption: {type: rot13}"}))
	want := "cluster-apiserver.yaml:6: APIServer cluster: spec.clientca: Forbidden: unknown field; check its spelling and its place\n" +
		"cluster-apiserver.yaml:7: APIServer cluster: spec.encryption.type: Unsupported value: \"rot13\": supported values: \"identity\", \"aescbc\", \"aesgcm\"\n" +
		"cluster-network-02-config.yml:13: Network cluster: spec.serviceNetwork[0]: Invalid value: \"10.129.0.0/16\": service network overlaps " +
		"cluster network 10.128.0.0/14 at cluster-network-02-config.yml:7; choose ranges that do not overlap\n" +
		"OAuth cluster: Required value: add it; without settings: " +
		"{apiVersion: config.openshift.io/v1, kind: OAuth, metadata: {name: cluster}, spec: {}}"
	if diff := gocmp.Diff(want, faults.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// R-REN-12.
func TestWarnings(t *testing.T) {
	t.Parallel()
	cluster, err := Read(changed(t, "one-node",
		change{"cluster-authentication.yaml", "spec: {}", "spec: {type: IntegratedOAuth}"},
		change{"cluster-oauth.yaml", "spec: {}", "spec:\n  tokenConfig:\n    accessTokenMaxAgeSeconds: 3600"},
		change{"cluster-image.yaml", "spec: {}", "spec:\n  registrySources: {insecureRegistries: [a, b]}\n  externalRegistryHostnames: [a, b]"},
		change{"99_feature-gate.yaml", "spec: {}", "spec: {featureSet: OKD}"}), testNow)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cluster-authentication.yaml:5 Authentication cluster spec.type (Ignored)",
		"cluster-image.yaml:6 Image cluster spec.registrySources (Ignored)",
		"cluster-oauth.yaml:6 OAuth cluster spec.tokenConfig (Ignored)",
	}
	if diff := gocmp.Diff(want, brief(cluster.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	settings, err := cluster.Settings(Options{Profile: Kubernetes, Version: "1.35.2"})
	if err != nil {
		t.Fatal(err)
	}
	want = []string{
		"99_feature-gate.yaml:5 FeatureGate cluster spec.featureSet (Ignored)",
		want[0], want[1], "cluster-image.yaml:7 Image cluster spec.externalRegistryHostnames (Ignored)", want[2],
	}
	if diff := gocmp.Diff(want, brief(settings.Warnings)); diff != "" {
		t.Errorf("warnings of profile kubernetes (-want +got):\n%s", diff)
	}
	if len(cluster.Warnings) != 3 {
		t.Error("Settings has changed the Cluster's warnings")
	}
}

func TestEmptyFolder(t *testing.T) {
	t.Parallel()
	faults := faultsOf(t, fstest.MapFS{"README.md": {}})
	if len(faults) < len(required)+2 || faults[len(faults)-1].Problem.Type != field.ErrorTypeRequired {
		t.Errorf("%v", faults)
	}
	_, err := Read(os.DirFS("no/such/folder"), testNow)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
