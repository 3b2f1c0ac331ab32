// SPDX-License-Identifier: Apache-2.0

// Package run runs controllers in a process: flags, metrics, probes, events, and leader election whose durations follow
// the topology. While required kinds are not served, the process is alive but not ready.
package run

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/topology"
)

// ErrRestart says that the process has to start again: the leader-election durations change with the topology, or the
// cluster serves more kinds. The Lease is released.
var ErrRestart = errors.New("the process has to start again")

const (
	pollServed      = 2 * time.Second // until required kinds are served
	pollOptional    = 15 * time.Second
	pollTopology    = 500 * time.Millisecond // from the cache
	stableTopology  = 2 * time.Second        // before the leader election follows it
	topologyTimeout = 10 * time.Second       // before the first leader election
	shutdownTimeout = 20 * time.Second       // for running reconciles
)

// Run runs the modules' controllers until the context ends, which is no error. name is the name of the Lease. It
// returns an ErrRestart when what is fixed at the start changes; a Pod then starts the process again. Run can be called
// once in a process.
func Run(ctx context.Context, restConfig *rest.Config, name string, options Options, modules ...controller.Module) error {
	if err := options.Validate(); err != nil {
		return err
	}
	counters, err := metrics.New(crmetrics.Registry)
	if err != nil {
		return err
	}
	restConfig = unthrottled(restConfig)
	known := &controller.Topology{}
	p := &process{
		name: name, options: options, modules: modules, rest: restConfig, metrics: counters, topology: known,
		class: topology.LeaderElection(initialMode(ctx, restConfig, known)), synced: make(chan struct{}),
	}
	if err := p.run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// unthrottled returns a config without the default rate limit of the client: the API server limits requests itself.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	return config
}

// initialMode reads the control-plane topology. If that fails for ten seconds, it returns HighlyAvailable, the default.
func initialMode(ctx context.Context, restConfig *rest.Config, known *controller.Topology) configv1.TopologyMode {
	log := logr.FromContextOrDiscard(ctx)
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	var cluster *topology.Cluster
	reader, err := client.New(restConfig, client.Options{})
	if err == nil {
		_ = wait.PollUntilContextCancel(ctx, pollServed, true, func(ctx context.Context) (bool, error) {
			cluster, err = known.Read(ctx, reader)
			return controller.IsNotServed(err) || !isUnavailable(err), nil
		})
	}
	if cluster == nil {
		log.Info("Topology is not known yet, starting with the default leader-election durations", "cause", fmt.Sprint(err))
		return configv1.HighlyAvailableTopologyMode
	}
	return cluster.ControlPlane.Mode
}

type process struct {
	name     string // of the Lease
	options  Options
	modules  []controller.Module
	rest     *rest.Config
	metrics  *metrics.Metrics
	topology *controller.Topology
	class    topology.LeaderElectionClass // fixed at the start

	lease   *lease // nil without leader election
	manager ctrl.Manager
	caches  controller.Caches
	absent  []schema.GroupVersionKind // optional kinds that are not served; set before synced is closed
	synced  chan struct{}
	waiting atomic.Pointer[string] // what /readyz waits for, "" for nothing
}

// objects returns the objects of all modules, with duplicates.
func (p *process) objects() []controller.Object {
	objects := []controller.Object{controller.Infrastructure}
	for _, m := range p.modules {
		objects = append(objects, m.Objects()...)
	}
	return objects
}

func (p *process) run(ctx context.Context) error {
	metricsOptions := metricsserver.Options{BindAddress: p.options.MetricsBindAddress}
	if p.options.MetricsSecure {
		metricsOptions.SecureServing = true
		// A client can make an HTTP/2 server work for many requests that it resets at once (CVE-2023-44487).
		metricsOptions.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
		metricsOptions.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	managerOptions := ctrl.Options{
		Scheme: scheme.Scheme,
		Logger: logr.FromContextOrDiscard(ctx),
		// Runnables need the context's logger, but not its end: the manager stops them.
		BaseContext:                   func() context.Context { return context.WithoutCancel(ctx) },
		NewCache:                      cache.New,
		Metrics:                       metricsOptions,
		HealthProbeBindAddress:        p.options.HealthProbeBindAddress,
		LeaderElection:                p.options.LeaderElect,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &p.class.LeaseDuration,
		RenewDeadline:                 &p.class.RenewDeadline,
		RetryPeriod:                   &p.class.RetryPeriod,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
	}
	var err error
	if p.lease, err = p.lock(); err != nil {
		return err
	}
	if p.lease != nil {
		managerOptions.LeaderElectionResourceLockInterface = p.lease
	}
	if p.manager, err = ctrl.NewManager(p.rest, managerOptions); err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if p.caches, err = controller.NewCaches(p.manager, p.objects()); err != nil {
		return err
	}
	p.setWaiting("the API server")
	if err := errors.Join(
		p.manager.AddHealthzCheck("ping", healthz.Ping), p.manager.AddReadyzCheck("caches", p.ready),
		p.manager.Add(everyReplica(p.syncAndFollow)), p.manager.Add(manager.RunnableFunc(p.runControllers)),
	); err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}
	err = p.manager.Start(ctx)
	if p.lease != nil {
		if failed := p.lease.releaseUnanswered(context.WithoutCancel(ctx)); failed != nil {
			logr.FromContextOrDiscard(ctx).Error(failed, "Lease is not released, the next process waits until it expires")
		}
	}
	if errors.Is(err, ErrRestart) {
		return err
	} else if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// syncAndFollow waits until required kinds are served, syncs the caches and then polls the topology. It runs on every
// replica, so that a new leader has synced caches.
func (p *process) syncAndFollow(ctx context.Context) error {
	if err := p.waitServed(ctx); err != nil {
		return nil // the context ended
	}
	p.setWaiting("its caches")
	if filled, err := p.caches.Fill(ctx, p.absent); !filled || err != nil {
		return ignoreCanceled(ctx, err)
	}
	p.setWaiting("")
	close(p.synced)
	if len(p.absent) > 0 {
		logr.FromContextOrDiscard(ctx).Info("Working without kinds that the cluster does not serve", "kinds", fmt.Sprint(p.absent))
	}
	var changed stopwatch
	polled := time.Now()
	return ignoreCanceled(ctx, wait.PollUntilContextCancel(ctx, pollTopology, true, func(ctx context.Context) (bool, error) {
		now := time.Now()
		cluster, err := p.topology.Read(ctx, p.caches)
		other := err == nil && cluster != nil && topology.LeaderElection(cluster.ControlPlane.Mode) != p.class
		if changed.since(other, now) >= stableTopology && p.options.LeaderElect && p.answers(ctx) {
			return false, p.restart(fmt.Sprintf("leader election follows the topology %s", cluster.ControlPlane.Mode))
		}
		if len(p.absent) > 0 && now.Sub(polled) >= pollOptional {
			polled = now
			if anyServed(p.manager.GetRESTMapper(), p.absent) {
				return false, p.restart("the cluster serves kinds that it did not serve before")
			}
		}
		return false, nil
	}))
}

func (p *process) restart(cause string) error {
	if p.lease != nil {
		p.lease.ending.Store(true)
	}
	return fmt.Errorf("%w: %s", ErrRestart, cause)
}

// answers reports whether the API server answers. During an outage the Lease cannot be released, and another process
// would have to wait until it expires; on a single node a change of the topology also rolls out the API server.
func (p *process) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pollServed)
	defer cancel()
	err := p.manager.GetAPIReader().Get(ctx, controller.Infrastructure.Key(), controller.Infrastructure.PartialMetadata())
	return client.IgnoreNotFound(err) == nil
}

// stopwatch measures for how long a condition has been true.
type stopwatch struct{ began time.Time }

func (s *stopwatch) since(isTrue bool, now time.Time) time.Duration {
	if !isTrue {
		s.began = time.Time{}
		return 0
	}
	if s.began.IsZero() {
		s.began = now
	}
	return now.Sub(s.began)
}

// anyServed reports whether one of the kinds is served; false during an outage, in which the Lease cannot be released.
func anyServed(mapper meta.RESTMapper, absent []schema.GroupVersionKind) bool {
	return slices.ContainsFunc(absent, func(gvk schema.GroupVersionKind) bool {
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return err == nil
	})
}

// waitServed waits until the API server serves all required kinds, and logs changes of the missing ones.
func (p *process) waitServed(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	logged := ""
	return wait.PollUntilContextCancel(ctx, pollServed, true, func(context.Context) (bool, error) {
		missing, absent, err := controller.Unserved(p.manager.GetRESTMapper(), p.objects())
		text := strings.Join(missing, ", ")
		switch {
		case err != nil:
			if text = "the API server"; text != logged {
				log.Info("API server does not answer", "cause", err.Error())
			}
		case text != "" && text != logged:
			log.Info("Waiting for the cluster to serve kinds", "kinds", text)
		case text == "" && logged != "":
			log.Info("Cluster serves every kind")
		}
		logged, p.absent = text, absent
		p.setWaiting(text)
		return text == "", nil
	})
}

// runControllers adds the controllers. It is called once the process leads, and waits for the caches.
func (p *process) runControllers(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.synced:
	}
	for _, m := range p.modules {
		// A module reads only from caches that it watches: a cache of another module can be older.
		own := controller.Caches{}
		for _, o := range m.Objects() {
			own[o] = p.caches[o]
		}
		env := controller.Environment{
			Options: p.options.Options, Metrics: p.metrics, Topology: p.topology,
			Client: p.manager.GetClient(), Live: controller.SkipUnserved(p.manager.GetAPIReader(), p.absent), Reader: own, Caches: own,
		}
		if err := controller.Add(p.manager, m, env); err != nil {
			return ignoreCanceled(ctx, fmt.Errorf("setting up %s: %w", m.Name(), err))
		}
	}
	<-ctx.Done()
	return nil
}

func (p *process) setWaiting(what string) { p.waiting.Store(&what) }

// ready implements /readyz.
func (p *process) ready(*http.Request) error {
	if what := p.waiting.Load(); what != nil && *what != "" {
		return fmt.Errorf("waiting for %s", *what)
	}
	return nil
}

func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// everyReplica is a runnable that does not need to lead.
type everyReplica func(context.Context) error

func (e everyReplica) Start(ctx context.Context) error { return e(ctx) }
func (everyReplica) NeedLeaderElection() bool          { return false }
