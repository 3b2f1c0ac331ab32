// SPDX-License-Identifier: Apache-2.0

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

var infrastructureKey = client.ObjectKey{Name: scenario.ClusterName}

// Operator runs a stand-in with the permissions of a configuration until the context ends, which is no error.
type Operator func(context.Context, *rest.Config) error

// Process is a running stand-in. Its methods may be called from several goroutines.
type Process struct {
	operator Operator
	config   *rest.Config
	log      logr.Logger
	ctx      context.Context //nolint:containedctx // the lifetime of the cluster

	mu    sync.Mutex
	end   context.CancelFunc
	ended chan struct{}
}

// Start starts a stand-in, which ends with the context at the latest. Its errors are logged.
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

// Restart ends the stand-in and starts it again.
func (p *Process) Restart() {
	p.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start()
}

// Stop ends the stand-in and returns when it has ended.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	<-p.ended
}

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
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
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
