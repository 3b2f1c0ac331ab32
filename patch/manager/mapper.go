package manager

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper makes the manager's RESTMapper. A manager asks for the scope of every kind that it is to cache while it is made, and cannot be
// made while one is not served; but then there would be no probes to tell what is waited for. So the kinds of the modules, whose
// scopes are known, are answered for: while the manager is made without asking, because each question to an API server that
// is away takes ten seconds, in which there are no probes either, and after that where the API server has no answer.
func (p *process) mapper(restConfig *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	served, err := apiutil.NewDynamicRESTMapper(restConfig, httpClient)
	if err != nil {
		return nil, err
	}
	p.served = served
	known := &knownKinds{RESTMapper: served, made: &p.made, scopes: map[schema.GroupVersionKind]meta.RESTScope{}}
	for _, o := range p.objects() {
		known.scopes[o.GroupVersionKind] = meta.RESTScopeRoot
		if o.Namespace != "" {
			known.scopes[o.GroupVersionKind] = meta.RESTScopeNamespace
		}
	}
	return known, nil
}

// knownKinds is a RESTMapper that knows some kinds before the API server does.
type knownKinds struct {
	meta.RESTMapper
	made   *atomic.Bool
	scopes map[schema.GroupVersionKind]meta.RESTScope
	// served are the mappings of these kinds that the API server has said. They never change: a kind that is served anew has the same name and scope.
	served sync.Map // of schema.GroupVersionKind to *meta.RESTMapping
}

// RESTMapping implements meta.RESTMapper. Once the manager is made, what the API server says comes first.
func (k *knownKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	known := k.known(kind, versions)
	if known == nil {
		return k.RESTMapper.RESTMapping(kind, versions...)
	}
	if !k.made.Load() {
		return known, nil
	}
	if said, ok := k.served.Load(known.GroupVersionKind); ok {
		return said.(*meta.RESTMapping), nil //nolint:forcetypeassert // nothing else is put there
	}
	said, err := k.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return known, nil
	}
	if said.GroupVersionKind == known.GroupVersionKind {
		k.served.Store(known.GroupVersionKind, said)
	}
	return said, nil
}

func (k *knownKinds) known(kind schema.GroupKind, versions []string) *meta.RESTMapping {
	for _, version := range versions {
		gvk := kind.WithVersion(version)
		if scope, ok := k.scopes[gvk]; ok {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: scope}
		}
	}
	return nil
}

// isNotServed tells an API server that does not serve a kind from one that does not answer.
func isNotServed(err error) bool {
	var failed *apiutil.ErrResourceDiscoveryFailed
	if !errors.As(err, &failed) {
		return meta.IsNoMatchError(err)
	}
	for _, cause := range *failed {
		if !meta.IsNoMatchError(cause) && !apierrors.IsNotFound(cause) {
			return false
		}
	}
	return true
}
