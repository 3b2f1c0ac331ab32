// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
)

var (
	errRouteName = errors.New("not NAMESPACE/NAME of a Route")
	errNoHost    = errors.New("the Route has no host")
)

func parseRoute(text string) (types.NamespacedName, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(text)
	if err != nil || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("%w: %q", errRouteName, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// endpointOf returns what a Route publishes: https with TLS.
func endpointOf(ctx context.Context, config *rest.Config, name types.NamespacedName, address string) (traffic.Endpoint, error) {
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		return traffic.Endpoint{}, err
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return traffic.Endpoint{}, fmt.Errorf("connect: %w", err)
	}
	route := &routev1.Route{}
	if err := kube.Get(ctx, name, route); err != nil {
		return traffic.Endpoint{}, fmt.Errorf("read Route %s: %w", name, err)
	}
	host := route.Spec.Host
	for _, ingress := range route.Status.Ingress {
		host = cmp.Or(host, ingress.Host)
	}
	if host == "" {
		return traffic.Endpoint{}, fmt.Errorf("%w: %s", errNoHost, name)
	}
	protocol := "http"
	if route.Spec.TLS != nil {
		protocol = "https"
	}
	return traffic.Endpoint{URL: protocol + "://" + host + cmp.Or(route.Spec.Path, "/"), Address: address}, nil
}
