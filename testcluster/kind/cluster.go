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
	// readyTimeout is for nodes after kubeadm is through: the network's configuration is read every five seconds.
	readyTimeout = 3 * time.Minute
	// deleteTimeout is for removing everything after an interruption.
	deleteTimeout = 2 * time.Minute
	// deleteAgain is how often containers are looked for that a creation which is being stopped still makes.
	deleteAgain = time.Second
	// networkEnv is the library's only way to be told a network.
	networkEnv = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
)

// Cluster is a cluster of real kubelets.
type Cluster struct {
	name     string
	engine   engine.Engine
	provider *cluster.Provider
	// kubeconfig is a file.
	kubeconfig string
	config     *rest.Config
	clientset  *kubernetes.Clientset
	progress   io.Writer
	started    time.Time
}

// creating guards the environment of this process.
var creating sync.Mutex

// Create makes a cluster and returns when its nodes are Ready. If that fails or the context ends, nothing of it is left.
func Create(ctx context.Context, config Config) (*Cluster, error) {
	config, err := config.defaulted()
	if err != nil {
		return nil, err
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return nil, err
	}
	m, leftover, err := look(ctx, e, config.Name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(config.leftover(leftover), config.check(m)); err != nil {
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

// create runs the library, which knows no context: what it makes is removed under its feet until it gives up.
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
		return err //nolint:wrapcheck // says it all
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
	again := time.NewTicker(deleteAgain)
	defer again.Stop()
	for {
		select {
		case <-done:
			return ctx.Err() //nolint:wrapcheck // the caller says what was interrupted
		case <-again.C:
			// Whatever cannot be removed now is removed in the end.
			_ = c.provider.Delete(c.name, c.kubeconfig)
		}
	}
}

// connect makes the clients.
func (c *Cluster) connect() error {
	text, err := c.provider.KubeConfig(c.name, false)
	if err != nil {
		return fmt.Errorf("find cluster %s: %w", c.name, err)
	}
	if c.config, err = clientcmd.RESTConfigFromKubeConfig([]byte(text)); err != nil {
		return fmt.Errorf("read the kubeconfig of cluster %s: %w", c.name, err)
	}
	c.config.QPS = -1
	// OpenShift's labels are deprecated ones, which is of no news to anybody here.
	c.config.WarningHandler = rest.NoWarnings{}
	c.clientset, err = kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return os.WriteFile(c.kubeconfig, []byte(text), 0o600) //nolint:wrapcheck // says it all
}

// Delete removes the cluster: containers, volumes, network and kubeconfig. It works whatever is left of it.
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

// Name is the cluster's.
func (c *Cluster) Name() string { return c.name }

// Engine is where its nodes run.
func (c *Cluster) Engine() engine.Engine { return c.engine }

// Kubeconfig is a file for a client that may do everything.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig is a new configuration for a client that may do everything. It is not rate limited.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Clientset may do everything.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

func (c *Cluster) say(format string, args ...any) {
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(c.progress, "%5.1fs  %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}
