// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

const bundleKey = "ca-bundle.crt"

// Bundles of client certificates that kube-apiserver accepts, and bundles of its serving certificates.
var (
	clientBundles = []store.Object{
		{Namespace: configNamespace, Name: "admin-kubeconfig-client-ca"},
		{Namespace: managedNamespace, Name: "csr-controller-ca"},
		{Namespace: operatorNamespace, Name: "kube-apiserver-to-kubelet-client-ca"},
		{Namespace: operatorNamespace, Name: "kube-control-plane-signer-ca"},
		{Namespace: managedNamespace, Name: "kubelet-bootstrap-kubeconfig"},
		{Namespace: operatorNamespace, Name: "node-system-admin-ca"},
	}
	userClientBundle = store.Object{Namespace: Namespace, Name: "user-client-ca"}
	serverBundles    = []store.Object{
		{Namespace: operatorNamespace, Name: "loadbalancer-serving-ca"},
		{Namespace: operatorNamespace, Name: "localhost-serving-ca"},
		{Namespace: operatorNamespace, Name: "service-network-serving-ca"},
		{Namespace: operatorNamespace, Name: "localhost-recovery-serving-ca"},
	}
)

// written are the objects that desired returns.
var written = slices.Concat(
	store.ConfigMaps(Namespace, podName, "config", "client-ca", "kube-apiserver-server-ca", auditPolicies,
		"kube-apiserver-cert-syncer-kubeconfig", "check-endpoints-kubeconfig", "control-plane-node-kubeconfig"),
	store.ConfigMaps(managedNamespace, authConfig),
	store.Secrets(Namespace, "node-kubeconfigs"),
	store.Secrets(AdminNamespace, AdminKubeconfigs),
	store.Secrets(BootstrapNamespace, BootstrapKubeconfigs),
)

type target struct {
	settings *inputs.Settings
	session  *store.Session
}

// desired returns kube-apiserver's configuration, pod, bundles and kubeconfigs, once all required values were observed.
func (t target) desired(ctx context.Context) ([]runtime.Object, error) {
	observed, err := librarygo.ObservedConfig(ctx, t.session, librarygo.KubeAPIServer)
	if err != nil {
		return nil, err
	}
	if err := checkObserved(observed); err != nil {
		return nil, err
	}
	all, err := t.configAndPod(ctx, observed)
	if err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) ([]runtime.Object, error){t.policies, t.bundlesAndKubeconfigs} {
		more, err := part(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (t target) configAndPod(ctx context.Context, observed map[string]any) ([]runtime.Object, error) {
	config, err := mergeConfig(observed)
	if err != nil {
		return nil, err
	}
	configMap, err := podtemplate.YAML(Namespace, "config", "config.yaml", config)
	if err != nil {
		return nil, err
	}
	grace, err := gracePeriod(observed)
	if err != nil {
		return nil, err
	}
	environment, err := observe.ProxyEnv(observed)
	if err != nil {
		return nil, fmt.Errorf("observed config: %w", err)
	}
	var pod *corev1.Pod
	if images := t.settings.Images; t.settings.Profile == inputs.OpenShift {
		pod = openShiftPod(images["hyperkube"], images["cluster-kube-apiserver-operator"], release(t.settings.Cluster.FeatureGate), grace, environment)
	} else {
		flags, admission, err := Flags(config, func(folder string) ([]string, error) { return t.keyFiles(ctx, folder) })
		if err != nil {
			return nil, err
		}
		if admission != "" {
			configMap.Data[admissionKey] = admission
		}
		pod = kubernetesPod(images[component], flags, grace, environment)
	}
	podConfigMap, err := podtemplate.ConfigMap(Namespace, podName, pod, t.settings.Version)
	return []runtime.Object{configMap, podConfigMap}, err
}

// release returns the version of the payload, by which operators select feature gates.
func release(gates *configv1.FeatureGate) string {
	if len(gates.Status.FeatureGates) != 1 {
		return ""
	}
	return gates.Status.FeatureGates[0].Version
}

// keyFiles returns the file names of public keys. It reads the source of a copy, which resource sync writes later.
func (t target) keyFiles(ctx context.Context, folder string) ([]string, error) {
	from := store.Object{Namespace: Namespace, Name: path.Base(folder)}
	for _, rule := range syncRules(t.settings.Cluster) {
		if !rule.Secret && rule.To == from {
			from = rule.From
		}
	}
	configMap, err := t.session.Kube().CoreV1().ConfigMaps(from.Namespace).Get(ctx, from.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("public keys of service account tokens: configmap %s: %w", from, err)
	}
	if len(configMap.Data) == 0 {
		return nil, fmt.Errorf("public keys of service account tokens: configmap %s: %w", from, ErrMissing)
	}
	return slices.Sorted(maps.Keys(configMap.Data)), nil
}

func (t target) policies(ctx context.Context) ([]runtime.Object, error) {
	policy, err := auditPolicy(t.settings.Cluster.APIServer.Spec.Audit)
	if err != nil {
		return nil, fmt.Errorf("apiserver.config.openshift.io %q: %w", t.settings.Cluster.APIServer.Name, err)
	}
	configMaps := []runtime.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: auditPolicies}, Data: map[string]string{"policy.yaml": policy},
	}}
	authentication := t.settings.Cluster.Authentication
	if authentication.Spec.Type != configv1.AuthenticationTypeOIDC {
		return configMaps, nil
	}
	config, err := authenticationConfig(authentication, func(name string) (string, error) {
		return t.bundle(ctx, store.Object{Namespace: configNamespace, Name: name})
	})
	if err != nil {
		return nil, err
	}
	return append(configMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: managedNamespace, Name: authConfig}, Data: map[string]string{authConfigKey: config},
	}), nil
}

// bundlesAndKubeconfigs returns the bundles of client CAs (U-REN-37) and serving CAs, and kubeconfigs.
func (t target) bundlesAndKubeconfigs(ctx context.Context) ([]runtime.Object, error) {
	from := clientBundles
	if t.settings.Cluster.APIServer.Spec.ClientCA.Name != "" {
		from = append(slices.Clone(from), userClientBundle)
	}
	clientCA, err := t.combine(ctx, "client-ca", from)
	if err != nil {
		return nil, err
	}
	serverCA, err := t.combine(ctx, "kube-apiserver-server-ca", serverBundles)
	if err != nil {
		return nil, err
	}
	all, err := podKubeconfigs()
	if err != nil {
		return nil, err
	}
	for _, k := range []struct {
		secret, certificate store.Object
		user                string
		keys                []string
	}{
		{
			store.Object{Namespace: Namespace, Name: "node-kubeconfigs"}, nodeSystemAdmin, "system:admin",
			[]string{LocalhostKubeconfig, RecoveryKubeconfig, InternalKubeconfig, ExternalKubeconfig},
		},
		{
			store.Object{Namespace: AdminNamespace, Name: AdminKubeconfigs}, clusterAdmin, "admin",
			[]string{LocalhostKubeconfig, InternalKubeconfig, ExternalKubeconfig},
		},
		{
			store.Object{Namespace: BootstrapNamespace, Name: BootstrapKubeconfigs}, nodeBootstrapper, "kubelet",
			[]string{LocalhostKubeconfig, InternalKubeconfig},
		},
	} {
		certificate, err := t.session.Kube().CoreV1().Secrets(k.certificate.Namespace).Get(ctx, k.certificate.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("kubeconfigs %s: %w", k.secret, err)
		}
		data, err := kubeconfigs(t.settings.Cluster.Infrastructure, k.user, certificate, serverCA.Data[bundleKey], k.keys...)
		if err != nil {
			return nil, err
		}
		all = append(all, kubeconfigSecret(k.secret.Namespace, k.secret.Name, data))
	}
	return append(all, clientCA, serverCA), nil
}

func (t target) combine(ctx context.Context, name string, from []store.Object) (*corev1.ConfigMap, error) {
	bundles := make([]string, 0, len(from))
	for _, object := range from {
		bundle, err := t.bundle(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("bundle %s/%s: %w", Namespace, name, err)
		}
		bundles = append(bundles, bundle)
	}
	combined, err := cabundle.Union(bundles...)
	if err != nil {
		return nil, fmt.Errorf("bundle %s/%s: %w", Namespace, name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Annotations: map[string]string{"openshift.io/owning-component": component}},
		Data:       map[string]string{bundleKey: combined},
	}, nil
}

// bundle returns the certificates of a ConfigMap. An empty one is an error, because clients would lose access.
func (t target) bundle(ctx context.Context, object store.Object) (string, error) {
	configMap, err := t.session.Kube().CoreV1().ConfigMaps(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("configmap %s: %w", object, err)
	}
	if configMap.Data[bundleKey] == "" {
		return "", fmt.Errorf("configmap %s: %s: %w", object, bundleKey, ErrMissing)
	}
	return configMap.Data[bundleKey], nil
}
