// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

const (
	// readyTimeout is for nodes after kubeadm has ended: containerd reads the network configuration every five seconds.
	readyTimeout = 3 * time.Minute
	// deleteTimeout bounds the removal after an interruption.
	deleteTimeout = 2 * time.Minute
	// deleteInterval is the interval of removals of containers that an interrupted creation still makes.
	deleteInterval = time.Second
	// networkEnv is the only setting of kind for the network.
	networkEnv = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
)

// Cluster is a cluster with real kubelets.
type Cluster struct {
	name       string
	engine     engine.Engine
	provider   *cluster.Provider
	kubeconfig string
	config     *rest.Config
	clientset  *kubernetes.Clientset
	progress   io.Writer
	started    time.Time
}

// creating guards the environment of this process.
var creating sync.Mutex

// Create makes a cluster and returns when its nodes are Ready. If that fails or the context ends, it removes
// everything.
func Create(ctx context.Context, config Config) (*Cluster, error) {
	config, err := config.defaulted()
	if err != nil {
		return nil, err
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return nil, err
	}
	if err := config.leftover(ctx, e); err != nil {
		return nil, err
	}
	if config.Image == "" {
		if config.Image, _, err = nodeimage.Ensure(ctx, e, config.Progress); err != nil {
			return nil, err
		}
	}
	c, err := newCluster(e, config.Name, config.Progress)
	if err != nil {
		return nil, err
	}
	if err := c.bringUp(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("make cluster %s: %w", config.Name, err), c.Delete())
	}
	c.say("Cluster %s is up: export KUBECONFIG=%s", c.name, c.kubeconfig)
	return c, nil
}

func newCluster(e engine.Engine, name string, progress io.Writer) (*Cluster, error) {
	if err := e.Use(); err != nil {
		return nil, err
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		name: name, engine: e, progress: progress, started: time.Now(),
		kubeconfig: filepath.Join(filepath.Dir(cache), "kind", name+".kubeconfig"),
	}
	c.provider = cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{c}))
	return c, nil
}

func (c *Cluster) bringUp(ctx context.Context, config Config) error {
	if config.ControlPlanes > 1 {
		forget, err := c.ensureBalancer(ctx, config.Image)
		if err != nil {
			return err
		}
		defer forget()
	}
	if err := c.create(ctx, config); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	return c.Connect(ctx)
}

// create runs kind, which takes no context: after an interruption its containers are removed until it fails.
func (c *Cluster) create(ctx context.Context, config Config) error {
	wanted, err := config.forKind()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.kubeconfig), 0o755); err != nil {
		return fmt.Errorf("make the folder of the kubeconfig: %w", err)
	}
	creating.Lock()
	defer creating.Unlock()
	if err := os.Setenv(networkEnv, config.network()); err != nil {
		return err //nolint:wrapcheck // complete
	}
	done := make(chan error, 1)
	go func() {
		done <- c.whileTaken(ctx, func() error {
			return c.provider.Create(config.Name, cluster.CreateWithV1Alpha4Config(wanted), cluster.CreateWithKubeconfigPath(c.kubeconfig),
				cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
		}, func() error { return c.provider.Delete(c.name, c.kubeconfig) })
	}()
	select {
	case err := <-done:
		return errors.Join(err, ctx.Err())
	case <-ctx.Done():
	}
	c.say("Interrupted: removing what there is")
	again := time.NewTicker(deleteInterval)
	defer again.Stop()
	for {
		select {
		case <-done:
			return ctx.Err() //nolint:wrapcheck // the caller adds what was interrupted
		case <-again.C:
			// What cannot be removed now is removed by Delete.
			_ = c.provider.Delete(c.name, c.kubeconfig)
		}
	}
}

func (c *Cluster) connect() error {
	text, err := c.provider.KubeConfig(c.name, false)
	if err != nil {
		return fmt.Errorf("find cluster %s: %w", c.name, err)
	}
	if c.config, err = clientcmd.RESTConfigFromKubeConfig([]byte(text)); err != nil {
		return fmt.Errorf("read the kubeconfig of cluster %s: %w", c.name, err)
	}
	c.config.QPS = -1
	c.config.WarningHandler = rest.NoWarnings{}
	c.clientset, err = kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return os.WriteFile(c.kubeconfig, []byte(text), 0o600) //nolint:wrapcheck // complete
}

// Delete removes the cluster: containers, volumes, network and kubeconfig. It also removes an incomplete cluster.
func (c *Cluster) Delete() error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout) //nolint:forbidigo // it works after every context has ended
	defer cancel()
	err := c.provider.Delete(c.name, c.kubeconfig)
	ids, listed := c.engine.Output(ctx, "network", "ls", "--quiet", "--filter", "name=^"+networkOf(c.name)+"$")
	err = errors.Join(err, listed)
	for _, id := range strings.Fields(ids) {
		_, removed := c.engine.Output(ctx, "network", "rm", id)
		err = errors.Join(err, removed)
	}
	_, pruned := c.engine.Output(ctx, "image", "prune", "--force", "--filter", "label="+balancerLabel)
	err = errors.Join(err, pruned)
	for _, file := range []string{c.kubeconfig, c.kubeconfig + ".lock"} {
		if gone := os.Remove(file); gone != nil && !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("remove cluster %s: %w", c.name, err)
	}
	c.say("Cluster %s is gone", c.name)
	return nil
}

// Delete removes a cluster by its name.
func Delete(ctx context.Context, name string, progress io.Writer) error {
	e, err := engine.Find(ctx)
	if err != nil {
		return err
	}
	c, err := newCluster(e, name, progress)
	if err != nil {
		return err
	}
	return c.Delete()
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Engine returns the engine of its nodes.
func (c *Cluster) Engine() engine.Engine { return c.engine }

// Kubeconfig returns the path of a kubeconfig with all permissions.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig returns a new configuration with all permissions and without rate limits.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Clientset returns a client with all permissions.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, "%5.1fs  %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}
