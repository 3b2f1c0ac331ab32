// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"embed"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// Objects that are created first; for the approval of kubelets' certificates see the package's documentation (R-APP-3).
//
//go:embed resources
var resources embed.FS

// Steps returns kube-apiserver's loops in their order (R-REN-6). etcd's loops, and kube-controller-manager's signer and
// key of service account tokens, must have run before. The first round of the cycle is the fifth to seventh step, its
// further rounds are the eighth.
func Steps(s *inputs.Settings) []loop.Step {
	return append([]loop.Step{
		loop.Once(librarygo.CertRotation(component+": certificates", certificates(s)...)),
		librarygo.Encryption(Namespace, librarygo.KubeAPIServer, schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}),
		loop.Once(boundTokens()),
	}, librarygo.StaticPod{
		Operator: librarygo.KubeAPIServer, Pod: StaticPod(s), Nodes: s.NodeNames(), Resources: resources, Wanted: s.Profile.Includes,
		Observers: observersFor(s),
		Desired: func(ctx context.Context, session *store.Session) ([]runtime.Object, error) {
			return target{settings: s, session: session}.desired(ctx)
		},
		Writes: written,
		Copies: syncRules(s.Cluster),
	}.Steps()...)
}

// observersFor returns the observers, each of which reads its inputs again.
func observersFor(s *inputs.Settings) []librarygo.Observer {
	adapted := []librarygo.Observer{
		observe.TLSProfile, observe.Proxy, observe.FeatureGatesAt(s.Profile, []string{"apiServerArguments", "feature-gates"}),
	}
	for _, o := range observers {
		adapted = append(adapted, func(ctx context.Context, session *store.Session, _ map[string]any) (map[string]any, error) {
			found, err := read(ctx, s, session)
			if err != nil {
				return nil, fmt.Errorf("observe %s: %w", o.name, err)
			}
			config, err := o.observe(found)
			if err != nil {
				return nil, fmt.Errorf("observe %s: %w", o.name, err)
			}
			return config, nil
		})
	}
	return adapted
}

// read returns the inputs of the observers, which handle missing ones.
func read(ctx context.Context, s *inputs.Settings, session *store.Session) (observation, error) {
	found := observation{Cluster: s.Cluster, Profile: s.Profile}
	core := session.Kube().CoreV1()
	endpoints, err := core.ConfigMaps(etcdNamespace).Get(ctx, "etcd-endpoints", metav1.GetOptions{})
	if err == nil {
		found.EtcdEndpoints = endpoints.Data
	} else if !apierrors.IsNotFound(err) {
		return found, err
	}
	encryption, err := core.Secrets(Namespace).Get(ctx, "encryption-config", metav1.GetOptions{})
	if err == nil {
		found.Encrypted = len(encryption.Data["encryption-config"]) > 0
	} else if !apierrors.IsNotFound(err) {
		return found, err
	}
	operator, err := session.Operator().OperatorV1().KubeAPIServers().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	found.EventTTLMinutes = operator.Spec.EventTTLMinutes
	return found, nil
}

// syncRules returns the copies between namespaces.
func syncRules(cluster *inputs.Cluster) []librarygo.SyncRule {
	in := func(namespace, name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	rules := []librarygo.SyncRule{
		{From: in(configNamespace, "etcd-serving-ca"), To: in(Namespace, "etcd-serving-ca")},
		{From: in(configNamespace, "etcd-client"), To: in(Namespace, "etcd-client"), Secret: true},
		{From: in(managedNamespace, "sa-token-signing-certs"), To: in(Namespace, "sa-token-signing-certs")},
		{From: in(managedNamespace, "kube-apiserver-aggregator-client-ca"), To: in(Namespace, "aggregator-client-ca")},
		{From: in(managedNamespace, "csr-controller-ca"), To: in(Namespace, "kubelet-serving-ca")},
		{From: in(managedNamespace, "csr-controller-ca"), To: in(operatorNamespace, "csr-controller-ca")},
		{From: in(Namespace, "client-ca"), To: in(managedNamespace, "kube-apiserver-client-ca")},
		{From: in(Namespace, "kubelet-serving-ca"), To: in(managedNamespace, "kubelet-serving-ca")},
		{From: in(Namespace, "kube-apiserver-server-ca"), To: in(managedNamespace, "kube-apiserver-server-ca")},
		{From: librarygo.EncryptionConfig(Namespace), To: in(Namespace, "encryption-config"), Secret: true},
	}
	for i, certificate := range cluster.APIServer.Spec.ServingCerts.NamedCertificates {
		rules = append(rules, librarygo.SyncRule{
			From: in(configNamespace, certificate.ServingCertificate.Name), To: in(Namespace, userServingCertificate(i)), Secret: true,
		})
	}
	if name := cluster.APIServer.Spec.ClientCA.Name; name != "" {
		rules = append(rules, librarygo.SyncRule{From: in(configNamespace, name), To: userClientBundle})
	}
	if name, found := oauthMetadata(cluster.Authentication); found {
		rules = append(rules, librarygo.SyncRule{From: in(configNamespace, name), To: in(Namespace, "oauth-metadata")})
	}
	if cluster.Authentication.Spec.Type == configv1.AuthenticationTypeOIDC {
		rules = append(rules, librarygo.SyncRule{From: in(managedNamespace, authConfig), To: in(Namespace, authConfig)})
	}
	if name := webhookSecret(cluster.Authentication); name != "" {
		rules = append(rules, librarygo.SyncRule{From: in(configNamespace, name), To: in(Namespace, "webhook-authenticator"), Secret: true})
	}
	return rules
}

// StaticPod returns the static pod of kube-apiserver and what its files are made of: the operator's lists without the
// token of the sidecars (see the package's documentation).
func StaticPod(*inputs.Settings) staticpods.Pod {
	pod := staticpods.Pod{
		Name: podName, Namespace: Namespace,
		ConfigMaps: []staticpods.Resource{
			{Name: podName},
			{Name: "config"},
			{Name: "kube-apiserver-cert-syncer-kubeconfig"},
			{Name: "oauth-metadata", Optional: true},
			{Name: "cloud-config", Optional: true},
			{Name: publicKeys},
			{Name: "etcd-serving-ca"},
			{Name: "kube-apiserver-server-ca", Optional: true},
			{Name: "kubelet-serving-ca"},
			{Name: "sa-token-signing-certs"},
			{Name: auditPolicies},
			{Name: authConfig, Optional: true},
		},
		Secrets: []staticpods.Resource{
			{Name: "etcd-client"},
			{Name: "encryption-config", Optional: true},
			{Name: "localhost-recovery-serving-certkey"},
			{Name: "webhook-authenticator", Optional: true},
		},
		CertDir: certDir,
		CertConfigMaps: []staticpods.Resource{
			{Name: "aggregator-client-ca"},
			{Name: "client-ca"},
			{Name: "trusted-ca-bundle", Optional: true},
			{Name: "control-plane-node-kubeconfig"},
			{Name: "check-endpoints-kubeconfig"},
		},
		CertSecrets: []staticpods.Resource{
			{Name: "aggregator-client"},
			{Name: "localhost-serving-cert-certkey"},
			{Name: "service-network-serving-certkey"},
			{Name: externalServing},
			{Name: "internal-loadbalancer-serving-certkey"},
			{Name: signingKey},
			{Name: nodeAdminCertificate},
			{Name: checkEndpointsCertificate},
			{Name: "kubelet-client"},
			{Name: "node-kubeconfigs"},
		},
	}
	for i := range inputs.MaxNamedCertificates {
		pod.CertSecrets = append(pod.CertSecrets, staticpods.Resource{Name: userServingCertificate(i), Optional: true})
	}
	return pod
}
