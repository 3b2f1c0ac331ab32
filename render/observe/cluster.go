package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/store"
	"github.com/solonode/sno/topology"
)

// proxyPath is where the operators keep what they put into the environment of their containers.
var proxyPath = []string{"targetconfigcontroller", "proxy"}

// Proxy observes the environment variables of Proxy.status. The spec has no effect: what must not go through the proxy is in the
// status only.
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

// LeaderElectionAt returns an observer of the durations of leader election. A single API server is away while it restarts, and
// with the ordinary durations leaders would give up then (R-OPS-4). The stock operators have the ordinary ones on every topology.
func LeaderElectionAt(shape func(lease, renew, retry string) map[string]any) librarygo.Observer {
	return func(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
		infrastructure, err := s.Config().ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		class := topology.LeaderElection(infrastructure.Status.ControlPlaneTopology)
		return shape(seconds(class.LeaseDuration), seconds(class.RenewDeadline), seconds(class.RetryPeriod)), nil
	}
}

// seconds returns the duration as the operators write it: 137s, never 2m17s.
func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
