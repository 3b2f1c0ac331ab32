// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/store"
)

var proxyPath = []string{"targetconfigcontroller", "proxy"}

// Proxy observes the environment variables of Proxy.status; the spec does not have the complete noProxy.
func Proxy(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
	proxy, err := s.Config().ConfigV1().Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	variables := map[string]any{}
	for name, value := range map[string]string{
		"HTTP_PROXY":  proxy.Status.HTTPProxy,
		"HTTPS_PROXY": proxy.Status.HTTPSProxy,
		"NO_PROXY":    proxy.Status.NoProxy,
	} {
		if value != "" {
			variables[name] = value
		}
	}
	if len(variables) == 0 {
		return map[string]any{}, nil
	}
	return Nested(variables, proxyPath...), nil
}

// ProxyEnv returns the variables that Proxy has observed, sorted by name.
func ProxyEnv(observed map[string]any) ([]corev1.EnvVar, error) {
	variables, _, err := unstructured.NestedStringMap(observed, proxyPath...)
	if err != nil {
		return nil, err
	}
	var env []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, corev1.EnvVar{Name: name, Value: variables[name]})
	}
	return env, nil
}
