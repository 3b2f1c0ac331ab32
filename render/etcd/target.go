// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

// ErrWrongEndpoints is returned if the endpoints are not those of the nodes.
var ErrWrongEndpoints = errors.New("the endpoints are not those of the nodes")

// desired returns the operator's own objects of a revision.
func desired(ctx context.Context, s *inputs.Settings, session *store.Session) ([]runtime.Object, error) {
	observed, err := librarygo.ObservedConfig(ctx, session, librarygo.Etcd)
	if err != nil {
		return nil, err
	}
	tls, err := tlsOf(observed)
	if err != nil {
		return nil, err
	}
	network, err := session.Config().ConfigV1().Networks().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all, err := members(s, network)
	if err != nil {
		return nil, err
	}
	// kube-apiserver uses the endpoints, the pod uses the nodes: both must match.
	written, err := session.Kube().CoreV1().ConfigMaps(endpoints.Namespace).Get(ctx, endpoints.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !maps.Equal(written.Data, endpointsOf(all)) {
		return nil, ErrWrongEndpoints
	}
	infrastructure, err := session.Config().ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	env := environment(all, infrastructure, tls, s.Images[component])
	pod, err := podtemplate.ConfigMap(namespace, "etcd-pod", podFor(s, all, env, tls), s.Version)
	if err != nil {
		return nil, err
	}
	return []runtime.Object{pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-scripts"},
		Data:       map[string]string{"etcd.env": shellExports(env)},
	}}, nil
}
