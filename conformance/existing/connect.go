package existing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	// ErrKubeconfig says that no kubeconfig was found, or that it cannot be used.
	ErrKubeconfig = errors.New("no usable kubeconfig")
	// ErrUnreachable says that the API server does not answer, or not to this account.
	ErrUnreachable = errors.New("cannot talk to the cluster")
)

// pingTimeout is for the first question. A server that is busy answers within a second.
const pingTimeout = 30 * time.Second

// connection is a cluster that answered.
type connection struct {
	config *rest.Config
	kube   kubernetes.Interface
	// source says where the configuration came from.
	source string
}

func connect(ctx context.Context, kubeconfig string) (*connection, error) {
	config, source, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	limit(config)
	config.UserAgent = "sno-tests"
	// They are about what the cluster serves, and no answer of ours.
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKubeconfig, source, err)
	}
	c := &connection{config: config, kube: kube, source: source}
	return c, c.ping(ctx)
}

// load finds a configuration as oc does. Unlike oc it does not go on to another cluster when the file that was asked for is not there.
func load(kubeconfig string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	files := rules.GetLoadingPrecedence()
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" && !slices.ContainsFunc(files, exists) {
		return nil, "", fmt.Errorf("%w: $%s names %s, which is not there", ErrKubeconfig, clientcmd.RecommendedConfigPathEnvVar, strings.Join(files, ", "))
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("%w: none is in %s, and this is no pod: use --kubeconfig FILE or set $%s",
			ErrKubeconfig, strings.Join(files, ", "), clientcmd.RecommendedConfigPathEnvVar)
	case err != nil:
		return nil, "", fmt.Errorf("%w: %s: %w", ErrKubeconfig, strings.Join(files, ", "), err)
	}
	if files = slices.DeleteFunc(files, func(file string) bool { return !exists(file) }); len(files) == 0 {
		return config, "the pod's own account", nil
	}
	return config, "kubeconfig " + strings.Join(files, string(filepath.ListSeparator)), nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// ping asks for the least there is, which every account that is logged in may read.
func (c *connection) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := c.kube.Discovery().RESTClient().Get().AbsPath("/api").Do(ctx).Error()
	if err == nil {
		return nil
	}
	advice := "is the cluster up, and is this the right address?"
	switch {
	case apierrors.IsUnauthorized(err):
		advice = "the server does not know this account: log in again, or use a kubeconfig whose credentials have not expired"
	case apierrors.IsForbidden(err):
		advice = "the account may not even ask what the server serves: use one that is logged in"
	case strings.Contains(err.Error(), "x509:"):
		advice = "the certificates do not fit: is this kubeconfig one of this cluster, and has it been renewed?"
	}
	return fmt.Errorf("%w: %s, server %s: %w: %s", ErrUnreachable, c.source, c.config.Host, err, advice)
}
