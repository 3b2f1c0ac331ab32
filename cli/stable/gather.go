package stable

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/solonode/sno/approver/controller/pages"
)

const (
	// page is how many objects are read at a time.
	page = 500
	// patience bounds one look: an API server that goes down leaves requests without an answer.
	patience = time.Minute
)

// apiServers selects the static pods of the API server among those in its namespace (openshift/cluster-kube-apiserver-operator,
// bindata/assets/kube-apiserver/pod.yaml).
var apiServers = []client.ListOption{client.InNamespace("openshift-kube-apiserver"), client.MatchingLabels{"app": "openshift-kube-apiserver"}}

// Gather reads what Look looks at. It does not fail: what could not be read is part of the state.
func Gather(ctx context.Context, c client.Reader) State {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var s State
	g := gatherer{ctx, c, &s}
	read(g, configv1.GroupVersion, kindClusterVersion, &s.ClusterVersions)
	read(g, configv1.GroupVersion, kindClusterOperator, &s.ClusterOperators)
	read(g, machineconfigurationv1.GroupVersion, kindPool, &s.Pools)
	read(g, corev1.SchemeGroupVersion, kindNode, &s.Nodes)
	read(g, certificatesv1.SchemeGroupVersion, kindRequest, &s.Requests)
	read(g, appsv1.SchemeGroupVersion, kindDeployment, &s.Deployments)
	read(g, appsv1.SchemeGroupVersion, kindDaemonSet, &s.DaemonSets)
	read(g, appsv1.SchemeGroupVersion, kindStatefulSet, &s.StatefulSets)
	read(g, corev1.SchemeGroupVersion, kindPod, &s.APIServers, apiServers...)
	return s
}

type gatherer struct {
	ctx    context.Context
	client client.Reader
	state  *State
}

// read reads all objects of a kind, a page at a time.
func read[T any](g gatherer, version schema.GroupVersion, kind string, into *[]T, options ...client.ListOption) {
	var all []T
	err := pages.Each(g.ctx, func(ctx context.Context, at string) (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := g.client.List(ctx, list, append(options, client.Limit(page), client.Continue(at))...); err != nil {
			return "", err
		}
		for i := range list.Items {
			var object T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &object); err != nil {
				return "", fmt.Errorf("decoding %s %s: %w", kind, client.ObjectKeyFromObject(&list.Items[i]), err)
			}
			all = append(all, object)
		}
		return list.GetContinue(), nil
	})
	switch {
	case err == nil:
		*into = all
	case notServed(err):
		g.state.NotServed = append(g.state.NotServed, kind)
	default:
		g.state.Unknown = append(g.state.Unknown, Unknown{Kind: kind, Error: err.Error()})
	}
}

// notServed tells an API server that does not serve a kind from one that does not answer.
func notServed(err error) bool {
	var failed *apiutil.ErrResourceDiscoveryFailed
	if !errors.As(err, &failed) {
		return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
	}
	for _, cause := range *failed {
		if !meta.IsNoMatchError(cause) && !apierrors.IsNotFound(cause) {
			return false
		}
	}
	return true
}
