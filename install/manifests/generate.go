// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/topology"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/installconfig"
)

// Input is the input of the manifests.
type Input struct {
	Config *installconfig.Config
	// Policy decides the topologies; empty is that of the enhancement.
	Policy topology.Policy
	// Profile of the static pods. Profile kubernetes gets what sno-render reads, and no kinds that only operators act on.
	Profile inputs.Profile
	// ClusterID is the ID of ClusterVersion, InfraID the prefix of the names of infrastructure.
	ClusterID string
	InfraID   string
}

var errGenerate = errors.New("cannot write a manifest")

// Generate returns the manifests, with the names of openshift-install, sorted by name. All have mode 0600, since some
// have secrets.
func Generate(in Input) ([]files.File, error) {
	decision, err := topology.Decide(in.Config.Install(), in.Policy)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the field
	}
	g := generator{Input: in, decision: decision}
	all := []named{
		{"cluster-infrastructure-02-config.yml", g.infrastructure()},
		{"cluster-ingress-02-config.yml", g.ingress()},
		{"cluster-dns-02-config.yml", &configv1.DNS{TypeMeta: config("DNS"), ObjectMeta: cluster(), Spec: configv1.DNSSpec{BaseDomain: in.Config.Domain()}}},
		{"cluster-network-02-config.yml", g.network()},
		{"cluster-proxy-01-config.yaml", g.proxy()},
		{"cluster-scheduler-02-config.yml", &configv1.Scheduler{
			TypeMeta: config("Scheduler"), ObjectMeta: cluster(), Spec: configv1.SchedulerSpec{MastersSchedulable: decision.MastersSchedulable},
		}},
		{"cluster-apiserver-02-config.yml", &configv1.APIServer{TypeMeta: config("APIServer"), ObjectMeta: cluster()}},
		{"cluster-authentication-02-config.yml", &configv1.Authentication{TypeMeta: config("Authentication"), ObjectMeta: cluster()}},
		{"cluster-image-02-config.yml", &configv1.Image{TypeMeta: config("Image"), ObjectMeta: cluster()}},
		{"cluster-node-02-config.yml", &configv1.Node{TypeMeta: config("Node"), ObjectMeta: cluster()}},
		{"cluster-oauth-02-config.yml", &configv1.OAuth{TypeMeta: config("OAuth"), ObjectMeta: cluster()}},
		{"99_feature-gate.yaml", &configv1.FeatureGate{
			TypeMeta: config("FeatureGate"), ObjectMeta: cluster(),
			Spec: configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: in.Config.FeatureSet}},
		}},
		{"cluster-config.yaml", configMap("kube-system", "cluster-config-v1", "install-config", string(in.Config.Raw))},
	}
	// sno-render refuses a Proxy with a missing bundle.
	if in.Config.AdditionalTrustBundle != "" {
		all = append(all, named{"user-ca-bundle-config.yaml", configMap("openshift-config", bundle, "ca-bundle.crt", in.Config.AdditionalTrustBundle)})
	}
	if in.Profile == inputs.OpenShift {
		more, err := g.forOperators()
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return encode(all)
}

type generator struct {
	Input
	decision topology.Decision
}

func config(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: kind}
}

func cluster() metav1.ObjectMeta { return metav1.ObjectMeta{Name: "cluster"} }

func configMap(namespace, name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{key: value},
	}
}

// infrastructure has both topologies (R-TOP-5, R-TOP-6), and the URLs of the API server.
func (g *generator) infrastructure() *configv1.Infrastructure {
	domain := g.Config.Domain()
	status := configv1.InfrastructureStatus{
		InfrastructureName: g.InfraID, Platform: g.Config.Platform, PlatformStatus: &configv1.PlatformStatus{Type: g.Config.Platform},
		APIServerURL: "https://api." + domain + ":6443", APIServerInternalURL: "https://api-int." + domain + ":6443",
		ControlPlaneTopology: g.decision.ControlPlaneTopology, InfrastructureTopology: g.decision.InfrastructureTopology,
		CPUPartitioning: g.Config.CPUPartitioning,
	}
	spec := configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: g.Config.Platform}}
	if external := g.Config.ExternalPlatform; external != nil {
		spec.PlatformSpec.External = &configv1.ExternalPlatformSpec{PlatformName: external.Name}
		state := configv1.CloudControllerManagerNone
		if external.CloudControllerManager != "" {
			state = configv1.CloudControllerManagerState(external.CloudControllerManager)
		}
		status.PlatformStatus.External = &configv1.ExternalPlatformStatus{CloudControllerManager: configv1.CloudControllerManagerStatus{State: state}}
	}
	return &configv1.Infrastructure{TypeMeta: config("Infrastructure"), ObjectMeta: cluster(), Spec: spec, Status: status}
}

// ingress pins the router with the current API, with any policy: if its pool is the control plane's, it stays there
// when workers are added (R-ING-3, R-ING-5).
func (g *generator) ingress() *configv1.Ingress {
	placement := g.decision.DefaultPlacement
	if placement == "" {
		placement = configv1.DefaultPlacementWorkers
		if g.decision.IngressPool == topology.ControlPlanePool {
			placement = configv1.DefaultPlacementControlPlane
		}
	}
	return &configv1.Ingress{
		TypeMeta: config("Ingress"), ObjectMeta: cluster(),
		Spec: configv1.IngressSpec{Domain: "apps." + g.Config.Domain()}, Status: configv1.IngressStatus{DefaultPlacement: placement},
	}
}

func (g *generator) network() *configv1.Network {
	n := g.Config.Networking
	spec := configv1.NetworkSpec{NetworkType: n.NetworkType, ExternalIP: &configv1.ExternalIPConfig{Policy: &configv1.ExternalIPPolicy{}}}
	for _, entry := range n.ClusterNetwork {
		spec.ClusterNetwork = append(spec.ClusterNetwork, configv1.ClusterNetworkEntry{CIDR: entry.CIDR.String(), HostPrefix: uint32(entry.HostPrefix)}) //nolint:gosec // validated by installconfig
	}
	for _, prefix := range n.ServiceNetwork {
		spec.ServiceNetwork = append(spec.ServiceNetwork, prefix.String())
	}
	return &configv1.Network{TypeMeta: config("Network"), ObjectMeta: cluster(), Spec: spec}
}

const bundle = "user-ca-bundle"

func (g *generator) proxy() *configv1.Proxy {
	p := &configv1.Proxy{TypeMeta: config("Proxy"), ObjectMeta: cluster()}
	c := g.Config
	if c.Proxy != nil {
		p.Spec.HTTPProxy, p.Spec.HTTPSProxy, p.Spec.NoProxy = c.Proxy.HTTPProxy, c.Proxy.HTTPSProxy, c.Proxy.NoProxy
		p.Status = configv1.ProxyStatus{HTTPProxy: c.Proxy.HTTPProxy, HTTPSProxy: c.Proxy.HTTPSProxy, NoProxy: NoProxy(c)}
	}
	if c.AdditionalTrustBundle != "" && (c.Proxy != nil || c.AdditionalTrustBundlePolicy == installconfig.TrustBundleAlways) {
		p.Spec.TrustedCA.Name = bundle
	}
	return p
}

// NoProxy returns the destinations without a proxy: the user's, and those in the cluster.
func NoProxy(c *installconfig.Config) string {
	if c.Proxy == nil {
		return ""
	}
	if c.Proxy.NoProxy == "*" {
		return "*"
	}
	list := []string{"127.0.0.1", "localhost", ".svc", ".cluster.local", "api-int." + c.Domain()}
	for _, prefix := range c.Networking.MachineNetwork {
		list = append(list, prefix.String())
	}
	for _, entry := range c.Networking.ClusterNetwork {
		list = append(list, entry.CIDR.String())
	}
	for _, prefix := range c.Networking.ServiceNetwork {
		list = append(list, prefix.String())
	}
	seen := map[string]bool{}
	var kept []string
	for _, entry := range append(strings.Split(c.Proxy.NoProxy, ","), list...) {
		if entry = strings.TrimSpace(entry); entry != "" && !seen[entry] {
			seen[entry] = true
			kept = append(kept, entry)
		}
	}
	return strings.Join(kept, ",")
}

func (g *generator) forOperators() ([]named, error) {
	c := g.Config
	all := []named{
		{"cvo-overrides.yaml", g.clusterVersion()},
		{"openshift-config-secret-pull-secret.yaml", &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "pull-secret"},
			Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(c.PullSecret)},
		}},
	}
	if len(c.ImageDigestSources) > 0 {
		all = append(all, named{"image-digest-mirror-set.yaml", mirrors(c.ImageDigestSources)})
	}
	keys, err := sshConfig(c.SSHKeys)
	if err != nil {
		return nil, err
	}
	for _, role := range []string{"master", "worker"} {
		if len(c.SSHKeys) > 0 {
			all = append(all, machineConfig(role, "ssh", machineconfigv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: keys}}))
		}
		if c.FIPS {
			all = append(all, machineConfig(role, "fips", machineconfigv1.MachineConfigSpec{FIPS: true}))
		}
	}
	return all, nil
}

func (g *generator) clusterVersion() *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{
		TypeMeta: config("ClusterVersion"), ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: configv1.ClusterID(g.ClusterID)},
	}
	if k := g.Config.Capabilities; k != nil {
		v.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{
			BaselineCapabilitySet: k.BaselineCapabilitySet, AdditionalEnabledCapabilities: k.AdditionalEnabledCapabilities,
		}
	}
	return v
}

func mirrors(sources []installconfig.ImageSource) *configv1.ImageDigestMirrorSet {
	set := &configv1.ImageDigestMirrorSet{TypeMeta: config("ImageDigestMirrorSet"), ObjectMeta: metav1.ObjectMeta{Name: "image-digest-mirror"}}
	for _, s := range sources {
		entry := configv1.ImageDigestMirrors{Source: s.Source, MirrorSourcePolicy: s.SourcePolicy}
		for _, m := range s.Mirrors {
			entry.Mirrors = append(entry.Mirrors, configv1.ImageMirror(m))
		}
		set.Spec.ImageDigestMirrors = append(set.Spec.ImageDigestMirrors, entry)
	}
	return set
}

func machineConfig(role, what string, spec machineconfigv1.MachineConfigSpec) named {
	name := "99-" + role + "-" + what
	return named{"99_openshift-machineconfig_" + name + ".yaml", &machineconfigv1.MachineConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: machineconfigv1.GroupVersion.String(), Kind: "MachineConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"machineconfiguration.openshift.io/role": role}}, Spec: spec,
	}}
}

func sshConfig(keys []string) ([]byte, error) {
	var b ignition.Builder
	b.AddSSHKeys("sshKey", "core", keys)
	return b.Encode() //nolint:wrapcheck // it names the user
}

// Node returns the manifest of the control-plane node for sno-render, with its primary address first. It is not
// applied, since a kubelet registers its own Node.
func Node(name string, addresses []netip.Addr) (files.File, error) {
	var list []any
	for _, a := range addresses {
		list = append(list, map[string]any{"type": string(corev1.NodeInternalIP), "address": a.String()})
	}
	return File("node.yaml", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			corev1.LabelHostname: name, "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": "",
		}},
		"status": map[string]any{"addresses": append(list, map[string]any{"type": string(corev1.NodeHostName), "address": name})},
	}})
}

type named struct {
	file   string
	object runtime.Object
}

func encode(all []named) ([]files.File, error) {
	list := make([]files.File, 0, len(all))
	for _, n := range all {
		f, err := File(n.file, n.object)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// withStatus are the kinds whose status the installer sets.
var withStatus = []string{"Infrastructure", "Ingress", "Proxy", "Node"}

// File returns the manifest of an object with its type set, as a file of mode 0600.
func File(name string, object runtime.Object) (files.File, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	if !slices.Contains(withStatus, object.GetObjectKind().GroupVersionKind().Kind) {
		delete(fields, "status") // operators write it, and the API refuses the type's zero value
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	return files.File{Path: name, Mode: 0o600, Content: text}, nil
}

// prune removes empty fields, which an API server may not know. It keeps an empty spec, an empty policy, which allows
// nothing, and empty values in metadata and data.
func prune(fields map[string]any) {
	for key, value := range fields {
		m, isMap := value.(map[string]any)
		switch {
		case key == "metadata":
			delete(m, "creationTimestamp")
			continue
		case key == "data" || key == "policy" && isMap && len(m) == 0:
			continue
		case isMap:
			prune(m)
		}
		if value == nil || value == "" || isMap && len(m) == 0 && key != "spec" {
			delete(fields, key)
		}
	}
}
