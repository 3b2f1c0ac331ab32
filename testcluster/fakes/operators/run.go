package operators

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// infrastructureKey is the only Infrastructure.
var infrastructureKey = client.ObjectKey{Name: scenario.ClusterName}

// Operator runs a stand-in with the rights of a connection until the context ends, which is no error.
type Operator func(context.Context, *rest.Config) error

// Process is a stand-in that runs. Its methods may be called from several goroutines.
type Process struct {
	operator Operator
	config   *rest.Config
	log      logr.Logger
	ctx      context.Context //nolint:containedctx // of the cluster that the stand-in lives and dies with

	mu    sync.Mutex
	end   context.CancelFunc
	ended chan struct{}
}

// Start starts a stand-in, which ends with the context at the latest. What it complains about goes to the log.
func Start(ctx context.Context, config *rest.Config, operator Operator, log logr.Logger) *Process {
	p := &Process{operator: operator, config: config, log: log, ctx: ctrl.LoggerInto(ctx, log)}
	p.start()
	return p
}

func (p *Process) start() {
	ctx, cancel := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	p.end, p.ended = cancel, ended
	go func() {
		defer close(ended)
		if err := p.operator(ctx, p.config); err != nil {
			p.log.Error(err, "The operator ended")
		}
	}()
}

// Restart ends it and starts it again.
func (p *Process) Restart() {
	p.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start()
}

// Stop ends it and returns when it has ended.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	<-p.ended
}

// run runs what setUp adds to a manager, until the context ends.
func run(ctx context.Context, name string, restConfig *rest.Config, options cache.Options, setUp func(ctrl.Manager) error) error {
	scheme, err := embedded.NewScheme()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Logger:                 ctrl.LoggerFrom(ctx).WithName(name),
		Cache:                  options,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		// One process may run several of these, each on a cluster of its own.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("make the manager of %s: %w", name, err)
	}
	if err := setUp(manager); err != nil {
		return fmt.Errorf("make the controller of %s: %w", name, err)
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}
