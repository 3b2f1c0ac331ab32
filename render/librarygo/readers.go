// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"reflect"

	"github.com/openshift/library-go/pkg/operator/v1helpers"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/solonode/sno/render/store"
)

// configMaps and secrets are listers without a cache. No controller used here lists with them.
type configMaps struct {
	corev1listers.ConfigMapNamespaceLister
	client    corev1client.ConfigMapsGetter
	namespace string
}

func (c configMaps) ConfigMaps(namespace string) corev1listers.ConfigMapNamespaceLister {
	return configMaps{client: c.client, namespace: namespace}
}

func (c configMaps) Get(name string) (*corev1.ConfigMap, error) {
	return c.client.ConfigMaps(c.namespace).Get(background(), name, metav1.GetOptions{})
}

type secrets struct {
	corev1listers.SecretNamespaceLister
	client    corev1client.SecretsGetter
	namespace string
}

func (s secrets) Secrets(namespace string) corev1listers.SecretNamespaceLister {
	return secrets{client: s.client, namespace: namespace}
}

func (s secrets) Get(name string) (*corev1.Secret, error) {
	return s.client.Secrets(s.namespace).Get(background(), name, metav1.GetOptions{})
}

// namespaces implements the informers of namespaces without running them.
type namespaces struct {
	client corev1client.CoreV1Interface
	names  sets.Set[string]
}

var _ v1helpers.KubeInformersForNamespaces = namespaces{}

func informersFor(s *store.Session, names ...string) namespaces {
	return namespaces{client: s.Kube().CoreV1(), names: sets.New(names...)}
}

func (n namespaces) Start(<-chan struct{}) {}

func (n namespaces) InformersFor(string) informers.SharedInformerFactory {
	return idleFactory{client: n.client}
}

func (n namespaces) Namespaces() sets.Set[string] { return n.names }

func (n namespaces) WaitForCacheSync(<-chan struct{}) map[string]map[reflect.Type]bool { return nil }

func (n namespaces) ConfigMapLister() corev1listers.ConfigMapLister {
	return configMaps{client: n.client}
}

func (n namespaces) SecretLister() corev1listers.SecretLister { return secrets{client: n.client} }

// PodLister returns nil: no controller used here lists pods.
func (n namespaces) PodLister() corev1listers.PodLister { return nil }

// idleFactory returns idle informers of ConfigMaps and Secrets, with listers without a cache. Others are nil.
type idleFactory struct {
	informers.SharedInformerFactory
	client corev1client.CoreV1Interface
}

func (f idleFactory) Core() coreinformers.Interface { return idleCore{client: f.client} }

type idleCore struct {
	corev1informers.Interface
	client corev1client.CoreV1Interface
}

func (c idleCore) V1() corev1informers.Interface { return c }

func (c idleCore) ConfigMaps() corev1informers.ConfigMapInformer { return idleConfigMaps(c) }

func (c idleCore) Secrets() corev1informers.SecretInformer { return idleSecrets(c) }

type idleConfigMaps idleCore

func (idleConfigMaps) Informer() cache.SharedIndexInformer { return idleInformer{} }

func (c idleConfigMaps) Lister() corev1listers.ConfigMapLister { return configMaps{client: c.client} }

type idleSecrets idleCore

func (idleSecrets) Informer() cache.SharedIndexInformer { return idleInformer{} }

func (s idleSecrets) Lister() corev1listers.SecretLister { return secrets{client: s.client} }

// idleInformer is an informer without events.
type idleInformer struct {
	cache.SharedIndexInformer
}

func (idleInformer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

func (idleInformer) HasSynced() bool { return true }
