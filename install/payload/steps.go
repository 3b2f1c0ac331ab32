// SPDX-License-Identifier: Apache-2.0

package payload

import "slices"

// Folders of the assets.
const (
	manifestDir  = "manifests"
	podDir       = "bootstrap-manifests"
	tlsDir       = "tls"
	featureGate  = manifestDir + "/99_feature-gate.yaml"
	apiInput     = "input" // of the API's render, in its output: a copy of the manifests, one of which it rewrites
	references   = "image-references"
	metadata     = "release-metadata"
	network      = "/assets/manifests/cluster-network-02-config.yml"
	infra        = "/assets/manifests/cluster-infrastructure-02-config.yml"
	highProfile  = "self-managed-high-availability"
	assetsVolume = "/assets"
)

// step is the render command of one operator.
type step struct {
	name string // also that of the container
	tag  string // of the image; empty for the release image
	// command follows the image.
	command []string
	root    bool   // it runs as root
	output  string // its folder, which the flags name as OUT
	flags   []flag
	// must are files and folders that the output has.
	must []string
	// copies are folders of the output whose files belong into folders of the assets.
	copies [][2]string
}

// flag has a value with placeholders: OUT, VERSION, KUBERNETES, RELEASE, SELF and TAG(name).
type flag struct {
	name, value string
	// optional flags are left out where the command does not know them: releases differ.
	optional bool
}

func required(pairs ...string) []flag {
	var flags []flag
	for pair := range slices.Chunk(pairs, 2) {
		flags = append(flags, flag{pair[0], pair[1], false})
	}
	return flags
}

func optional(pairs ...string) []flag {
	flags := required(pairs...)
	for i := range flags {
		flags[i].optional = true
	}
	return flags
}

// steps are the renders of bootkube.sh in place, in order: the flags of 4.19 to 5.0.
var steps = []step{
	{
		name: "api-render", tag: "cluster-config-api", command: []string{"/usr/bin/render"}, output: "api-bootstrap",
		flags:  required("asset-output-dir", "OUT", "rendered-manifest-dir", "OUT/"+apiInput, "cluster-profile", highProfile, "payload-version", "VERSION"),
		must:   []string{"manifests", apiInput + "/99_feature-gate.yaml"},
		copies: [][2]string{{"manifests", manifestDir}, {apiInput, manifestDir}},
	},
	{
		name: "auth-api-render", tag: "cluster-authentication-operator", command: []string{"render"}, output: "auth-api-bootstrap",
		flags: slices.Concat(required("asset-output-dir", "OUT/manifests"),
			optional("rendered-manifest-dir", "/assets/manifests", "cluster-profile", highProfile, "payload-version", "VERSION")),
		must: []string{"manifests"}, copies: [][2]string{{"manifests", manifestDir}},
	},
	{
		name: "config-render", tag: "cluster-config-operator", command: []string{"/usr/bin/cluster-config-operator", "render"}, output: "config-bootstrap",
		flags: slices.Concat(required("cluster-infrastructure-input-file", infra, "cloud-provider-config-output-file", "OUT/cloud-provider-config-generated.yaml",
			"config-output-file", "OUT/config", "asset-input-dir", "/assets/tls", "asset-output-dir", "OUT"),
			optional("skip-api-rendering", "true", "rendered-manifest-files", "/assets/manifests", "payload-version", "VERSION")),
	},
	{
		name: "cvo-render", command: []string{"render"}, output: "cvo-bootstrap",
		flags: slices.Concat(required("output-dir", "OUT", "release-image", "RELEASE"), optional("feature-gate-manifest-path", "/assets/"+featureGate)),
		must:  []string{"bootstrap/bootstrap-pod.yaml", "manifests"}, copies: [][2]string{{"bootstrap", podDir}, {"manifests", manifestDir}},
	},
	{
		name: "etcd-render", tag: "cluster-etcd-operator", command: []string{"/usr/bin/cluster-etcd-operator", "render"}, output: "etcd-bootstrap",
		flags: slices.Concat(required("asset-output-dir", "OUT", "cluster-configmap-file", "/assets/manifests/cluster-config.yaml", "etcd-image", "TAG(etcd)",
			"infra-config-file", infra, "network-config-file", network),
			optional("rendered-manifest-files", "/assets/manifests", "payload-version", "VERSION")),
		must:   []string{"etc-kubernetes/manifests/etcd-member-pod.yaml", "tls/etcd-ca-bundle.crt", "tls/etcd-client.crt", "tls/etcd-client.key", "manifests"},
		copies: [][2]string{{"manifests", manifestDir}, {"tls", tlsDir}},
	},
	{
		name: "kube-apiserver-render", tag: "cluster-kube-apiserver-operator", command: []string{"/usr/bin/cluster-kube-apiserver-operator", "render"}, output: "kube-apiserver-bootstrap",
		flags: slices.Concat(required("manifest-etcd-serving-ca", "etcd-ca-bundle.crt", "manifest-etcd-server-urls", "https://localhost:2379", "manifest-image", "TAG(hyperkube)",
			"manifest-operator-image", "SELF", "asset-input-dir", "/assets/tls", "asset-output-dir", "OUT", "config-output-file", "OUT/config", "cluster-config-file", network,
			"infra-config-file", infra),
			optional("cluster-auth-file", "/assets/manifests/cluster-authentication-02-config.yml", "rendered-manifest-files", "/assets/manifests", "payload-version", "VERSION",
				"operand-kubernetes-version", "KUBERNETES")),
		must: []string{"config", "bootstrap-manifests/kube-apiserver-pod.yaml", "manifests"}, copies: [][2]string{{"bootstrap-manifests", podDir}, {"manifests", manifestDir}},
	},
	{
		name: "kube-controller-render", tag: "cluster-kube-controller-manager-operator", command: []string{"/usr/bin/cluster-kube-controller-manager-operator", "render"},
		output: "kube-controller-manager-bootstrap",
		flags: slices.Concat(required("cluster-policy-controller-image", "TAG(cluster-policy-controller)", "manifest-image", "TAG(hyperkube)", "asset-input-dir", "/assets/tls",
			"asset-output-dir", "OUT", "config-output-file", "OUT/config", "cpc-config-output-file", "OUT/cpc-config", "cluster-config-file", network),
			optional("rendered-manifest-files", "/assets/manifests", "payload-version", "VERSION")),
		must:   []string{"config", "cpc-config", "bootstrap-manifests/kube-controller-manager-pod.yaml", "manifests"},
		copies: [][2]string{{"bootstrap-manifests", podDir}, {"manifests", manifestDir}, {"tls", tlsDir}},
	},
	{
		name: "kube-scheduler-render", tag: "cluster-kube-scheduler-operator", command: []string{"/usr/bin/cluster-kube-scheduler-operator", "render"}, output: "kube-scheduler-bootstrap",
		flags: slices.Concat(required("manifest-image", "TAG(hyperkube)", "asset-input-dir", "/assets/tls", "asset-output-dir", "OUT", "config-output-file", "OUT/config"),
			optional("rendered-manifest-files", "/assets/manifests", "payload-version", "VERSION")),
		must: []string{"config", "bootstrap-manifests/kube-scheduler-pod.yaml", "manifests"}, copies: [][2]string{{"bootstrap-manifests", podDir}, {"manifests", manifestDir}},
	},
	{
		name: "ingress-render", tag: "cluster-ingress-operator", command: []string{"render"}, output: "ingress-operator-manifests",
		flags: required("prefix", "cluster-ingress-", "output-dir", "OUT"), must: []string{"cluster-ingress-00-custom-resource-definition.yaml"},
		copies: [][2]string{{".", manifestDir}},
	},
	{
		// It writes for PerformanceProfiles only.
		name: "node-tuning-render", tag: "cluster-node-tuning-operator", command: []string{"render"}, output: "node-tuning-bootstrap",
		flags: required("asset-input-dir", "/assets/manifests", "asset-output-dir", "OUT"), copies: [][2]string{{".", manifestDir}},
	},
	{
		name: "mco-render", tag: "machine-config-operator", command: []string{"bootstrap"}, root: true, output: "mco-bootstrap",
		flags: required("root-ca", "/assets/tls/root-ca.crt", "kube-ca", "/assets/tls/kube-apiserver-complete-client-ca-bundle.crt", "config-file", "/assets/manifests/cluster-config.yaml",
			"dest-dir", "OUT", "pull-secret", "/assets/manifests/openshift-config-secret-pull-secret.yaml", "release-image", "RELEASE", "image-references", "/assets/"+references,
			"payload-version", "VERSION"),
		must: []string{"bootstrap/machineconfigoperator-bootstrap-pod.yaml", "bootstrap/manifests/machineconfigcontroller-controllerconfig.yaml",
			"bootstrap/manifests/master.machineconfigpool.yaml", "manifests"},
		copies: [][2]string{{"manifests", manifestDir}},
	},
	{
		// The capability may be off.
		name: "cco-render", tag: "cloud-credential-operator", command: []string{"render"}, root: true, output: "cco-bootstrap",
		flags:  required("dest-dir", "OUT", "manifests-dir", "/assets/manifests", "cloud-credential-operator-image", "SELF"),
		copies: [][2]string{{"manifests", manifestDir}, {"bootstrap-manifests", podDir}},
	},
}

// Names returns the names of the renders, in order.
func Names() []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// Outputs returns the names of the folders that the renders write.
func Outputs() []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.output)
	}
	return names
}

// keys are the files of tls that the renders and the static pods of the bootstrap phase read (U-REN-39). A render puts
// nothing in the place of a missing one, and ends successfully.
var keys = []string{
	"root-ca.crt", "admin-kubeconfig-ca-bundle.crt", "aggregator-ca-bundle.crt", "aggregator-client.crt", "aggregator-client.key", "aggregator-signer.crt", "aggregator-signer.key",
	"apiserver-proxy.crt", "apiserver-proxy.key", "bound-service-account-signing-key.key", "bound-service-account-signing-key.pub", "kube-apiserver-complete-client-ca-bundle.crt",
	"kube-apiserver-complete-server-ca-bundle.crt", "kube-apiserver-internal-lb-server.crt", "kube-apiserver-internal-lb-server.key", "kube-apiserver-lb-ca-bundle.crt",
	"kube-apiserver-lb-server.crt", "kube-apiserver-lb-server.key", "kube-apiserver-lb-signer.crt", "kube-apiserver-lb-signer.key", "kube-apiserver-localhost-ca-bundle.crt",
	"kube-apiserver-localhost-server.crt", "kube-apiserver-localhost-server.key", "kube-apiserver-localhost-signer.crt", "kube-apiserver-localhost-signer.key",
	"kube-apiserver-service-network-ca-bundle.crt", "kube-apiserver-service-network-server.crt", "kube-apiserver-service-network-server.key",
	"kube-apiserver-service-network-signer.crt", "kube-apiserver-service-network-signer.key", "kube-apiserver-to-kubelet-ca-bundle.crt", "kube-apiserver-to-kubelet-client.crt",
	"kube-apiserver-to-kubelet-client.key", "kube-apiserver-to-kubelet-signer.crt", "kube-apiserver-to-kubelet-signer.key", "kube-control-plane-ca-bundle.crt",
	"kube-control-plane-kube-controller-manager-client.crt", "kube-control-plane-kube-controller-manager-client.key", "kube-control-plane-kube-scheduler-client.crt",
	"kube-control-plane-kube-scheduler-client.key", "kube-control-plane-signer.crt", "kube-control-plane-signer.key", "kubelet-bootstrap-kubeconfig-ca-bundle.crt",
	"kubelet-client-ca-bundle.crt", "kubelet-client.crt", "kubelet-client.key", "kubelet-serving-ca-bundle.crt", "kubelet-signer.crt", "kubelet-signer.key",
	"machine-config-server.crt", "machine-config-server.key", "service-account.key", "service-account.pub",
}
