// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

var (
	// ErrKubeconfig is returned if no kubeconfig was found or it is invalid.
	ErrKubeconfig = errors.New("no usable kubeconfig")
	// ErrUnreachable is returned if the API server does not answer, or rejects the account.
	ErrUnreachable = errors.New("cannot reach the cluster")
)

// pingTimeout is for the first request. A busy server answers within a second.
const pingTimeout = 30 * time.Second

type connection struct {
	config *rest.Config
	kube   kubernetes.Interface
	source string
}

func connect(ctx context.Context, kubeconfig string) (*connection, error) {
	config, source, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	limit(config)
	config.UserAgent = "sno-tests"
	// Warnings are about the cluster's objects, not about the connection.
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKubeconfig, source, err)
	}
	c := &connection{config: config, kube: kube, source: source}
	return c, c.ping(ctx)
}

// load finds a configuration as oc does, but never uses another cluster if the configured file does not exist.
func load(kubeconfig string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	files := rules.GetLoadingPrecedence()
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" && !slices.ContainsFunc(files, exists) {
		return nil, "", fmt.Errorf("%w: $%s names %s, which does not exist", ErrKubeconfig, clientcmd.RecommendedConfigPathEnvVar, strings.Join(files, ", "))
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("%w: not found in %s, and this is not a pod: use --kubeconfig FILE or set $%s",
			ErrKubeconfig, strings.Join(files, ", "), clientcmd.RecommendedConfigPathEnvVar)
	case err != nil:
		return nil, "", fmt.Errorf("%w: %s: %w", ErrKubeconfig, strings.Join(files, ", "), err)
	}
	if files = slices.DeleteFunc(files, func(file string) bool { return !exists(file) }); len(files) == 0 {
		return config, "the pod's service account", nil
	}
	return config, "kubeconfig " + strings.Join(files, string(filepath.ListSeparator)), nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// ping sends a request that every authenticated account may send.
func (c *connection) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := c.kube.Discovery().RESTClient().Get().AbsPath("/api").Do(ctx).Error()
	if err == nil {
		return nil
	}
	advice := "check that the cluster is running and that the address is right"
	switch {
	case apierrors.IsUnauthorized(err):
		advice = "the credentials are not accepted: log in again, or use a kubeconfig whose credentials have not expired"
	case apierrors.IsForbidden(err):
		advice = "the account may not read the API versions: use an authenticated one"
	case strings.Contains(err.Error(), "x509:"):
		advice = "the certificates do not match: does the kubeconfig belong to this cluster, and is it current?"
	}
	return fmt.Errorf("%w: %s, server %s: %w: %s", ErrUnreachable, c.source, c.config.Host, err, advice)
}

const (
	// Others may use the cluster at the same time. Any one second has at most the sum of both.
	requestsPerSecond, requestsAtOnce = 40, 20
)

// limit bounds the total requests of all clients of the configuration and its copies, including retries. client-go's
// own limit is for each client, and logs waits.
func limit(config *rest.Config) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsAtOnce)
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limited{next: next, limiter: limiter} })
}

type limited struct {
	next    http.RoundTripper
	limiter flowcontrol.RateLimiter
}

// RoundTrip waits for the limiter. A request whose context would end first fails when it ends, as if it had been sent.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if err := l.limiter.Wait(ctx); err != nil {
		<-ctx.Done()
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, ctx.Err()
	}
	return l.next.RoundTrip(request)
}

// WrappedRoundTripper allows client-go to find a transport that can cancel requests.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }
