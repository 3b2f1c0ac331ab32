// Package run is the process around the controllers of one or more modules: flags, metrics, probes, events, and leader election whose
// durations follow the topology. While the API server or OpenShift's resources are missing, the process is alive but not ready.
package run

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/topology"
)

// classChanged ends one generation of the manager when the leader-election durations change with the topology.
type classChanged struct{ mode configv1.TopologyMode }

func (c classChanged) Error() string {
	return fmt.Sprintf("the topology %s has other leader-election durations", c.mode)
}

// errKindsAppeared ends one generation of the manager when the API server begins to serve an optional kind.
var errKindsAppeared = errors.New("the cluster serves kinds that it did not serve before")

const (
	pollServed      = 2 * time.Second // for kinds that must be served
	pollOptional    = 15 * time.Second
	pollTopology    = 500 * time.Millisecond // from the cache, for the leader election
	stableTopology  = 2 * time.Second        // before the leader election follows it; the modules follow it at once
	topologyTimeout = 10 * time.Second       // before the first leader election
	shutdownTimeout = 20 * time.Second       // for running reconciles
)

// Run runs the modules' controllers until the context ends, which is no error. name is the name of the Lease. An election cannot change
// its durations, so when they change with the topology, Run releases the Lease and starts the controllers again in the same process.
func Run(ctx context.Context, restConfig *rest.Config, name string, options Options, modules ...controller.Module) error {
	if err := options.Validate(); err != nil {
		return err
	}
	counters, err := metrics.New(crmetrics.Registry)
	if err != nil {
		return err
	}
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	restConfig = unthrottled(restConfig)
	known := &controller.Topology{}
	mode := firstTopology(ctx, restConfig, known)
	for {
		p := &process{
			name: name, identity: identity, options: options, modules: modules, rest: restConfig, metrics: counters,
			topology: known, class: topology.LeaderElection(mode), primed: make(chan struct{}),
		}
		err := p.run(ctx)
		var changed classChanged
		switch {
		case ctx.Err() != nil && err != nil:
			return nil // a controller may still run, so the Lease has to expire
		case ctx.Err() != nil:
			if err := p.releaseLease(ctx); err != nil {
				log.Info("Lease was not released and has to expire", "cause", err.Error())
			}
			return nil
		case errors.As(err, &changed):
			mode = changed.mode
			log.Info("Leader election follows the topology", "controlPlaneTopology", string(mode),
				"leaseDuration", topology.LeaderElection(mode).LeaseDuration.String())
		case errors.Is(err, errKindsAppeared):
			log.Info("Cluster serves more kinds, starting again")
		default:
			return err
		}
	}
}

// unthrottled returns a config without a client-side rate limit, unless one is set: the API server has priority and fairness.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	return config
}

// firstTopology reads the control-plane topology once. If that fails, the default durations are used until the watch delivers it.
func firstTopology(ctx context.Context, restConfig *rest.Config, known *controller.Topology) configv1.TopologyMode {
	log := logr.FromContextOrDiscard(ctx)
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	var cluster *topology.Cluster
	reader, err := client.New(restConfig, client.Options{})
	if err == nil {
		cluster, err = known.Read(ctx, reader)
	}
	if cluster == nil {
		log.Info("Topology is not known yet, starting with the default leader-election durations", "cause", fmt.Sprint(err))
		return configv1.HighlyAvailableTopologyMode
	}
	return cluster.ControlPlane.Mode
}

// process is one generation of the manager, between two changes of the leader-election durations.
type process struct {
	name, identity string // of the Lease, and of this replica in it
	options        Options
	modules        []controller.Module
	rest           *rest.Config
	metrics        *metrics.Metrics
	topology       *controller.Topology
	class          topology.LeaderElectionClass

	manager ctrl.Manager
	caches  controller.Caches
	absent  []schema.GroupVersionKind // optional kinds that are not served; set before primed is closed
	primed  chan struct{}
	waiting atomic.Pointer[string] // what /readyz waits for, "" for nothing
}

// objects returns what the modules read, with duplicates.
func (p *process) objects() []controller.Object {
	objects := []controller.Object{controller.Infrastructure}
	for _, m := range p.modules {
		objects = append(objects, m.Objects()...)
	}
	return objects
}

func (p *process) run(ctx context.Context) error {
	serving := metricsserver.Options{BindAddress: p.options.MetricsBindAddress}
	if p.options.MetricsSecure {
		serving.SecureServing = true
		serving.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	managing := ctrl.Options{
		Scheme: scheme.Scheme,
		Logger: logr.FromContextOrDiscard(ctx),
		// Runnables need the context's logger, but the manager ends them.
		BaseContext:                   func() context.Context { return context.WithoutCancel(ctx) },
		NewCache:                      cache.New,
		Metrics:                       serving,
		HealthProbeBindAddress:        p.options.HealthProbeBindAddress,
		LeaderElection:                p.options.LeaderElect,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &p.class.LeaseDuration,
		RenewDeadline:                 &p.class.RenewDeadline,
		RetryPeriod:                   &p.class.RetryPeriod,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		// Every generation creates controllers of the same names.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	lock, err := p.lock()
	if err != nil {
		return err
	}
	if lock != nil {
		managing.LeaderElectionResourceLockInterface = lock
	}
	if p.manager, err = ctrl.NewManager(p.rest, managing); err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if lock != nil {
		//nolint:staticcheck,nolintlint // a lock takes no other recorder, and only newer releases deprecate it
		lock.LockConfig.EventRecorder = p.manager.GetEventRecorderFor(p.identity)
	}
	if p.caches, err = controller.NewCaches(p.manager, p.objects()); err != nil {
		return err
	}
	p.setWaiting("the API server")
	if err := errors.Join(
		p.manager.AddHealthzCheck("ping", healthz.Ping), p.manager.AddReadyzCheck("caches", p.ready),
		p.manager.Add(everywhere(p.prime)), p.manager.Add(manager.RunnableFunc(p.control)),
	); err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}
	if err := p.manager.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// prime waits for every kind to be served, fills the caches and follows the topology. It runs on every replica, so that a new leader starts
// with filled caches.
func (p *process) prime(ctx context.Context) error {
	if err := p.waitServed(ctx); err != nil {
		return nil // the context ended
	}
	p.setWaiting("its caches")
	if filled, err := p.caches.Fill(ctx, p.absent); !filled || err != nil {
		return ignoreEnd(ctx, err)
	}
	p.setWaiting("")
	close(p.primed)
	if len(p.absent) > 0 {
		logr.FromContextOrDiscard(ctx).Info("Working without kinds that the cluster does not serve", "kinds", fmt.Sprint(p.absent))
	}
	var changed stopwatch
	polled := time.Now()
	return ignoreEnd(ctx, wait.PollUntilContextCancel(ctx, pollTopology, true, func(ctx context.Context) (bool, error) {
		now := time.Now()
		cluster, err := p.topology.Read(ctx, p.caches)
		other := err == nil && cluster != nil && topology.LeaderElection(cluster.ControlPlane.Mode) != p.class
		if changed.since(other, now) >= stableTopology && p.options.LeaderElect {
			return false, classChanged{cluster.ControlPlane.Mode}
		}
		if len(p.absent) > 0 && now.Sub(polled) >= pollOptional {
			polled = now
			if appeared(p.manager.GetRESTMapper(), p.absent) {
				return false, errKindsAppeared
			}
		}
		return false, nil
	}))
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

// appeared reports whether the API server serves one of the absent kinds now. It is false if the API server does not answer: starting
// again would release the Lease during an outage.
func appeared(mapper meta.RESTMapper, absent []schema.GroupVersionKind) bool {
	return slices.ContainsFunc(absent, func(gvk schema.GroupVersionKind) bool {
		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return err == nil
	})
}

// waitServed waits until the API server serves every kind that is needed, and logs changes of those that are missing.
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

// control adds the controllers. It runs when the process leads, and waits for the caches.
func (p *process) control(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.primed:
	}
	for _, m := range p.modules {
		// A module reads only from the caches that it watches, since another module's cache of the same object may be older.
		own := controller.Caches{}
		for _, o := range m.Objects() {
			own[o] = p.caches[o]
		}
		env := controller.Environment{
			Options: p.options.Options, Metrics: p.metrics, Topology: p.topology,
			Client: p.manager.GetClient(), Live: controller.SkipUnserved(p.manager.GetAPIReader(), p.absent), Reader: own, Caches: own,
		}
		if err := controller.Add(p.manager, m, env); err != nil {
			return ignoreEnd(ctx, fmt.Errorf("setting up %s: %w", m.Name(), err))
		}
	}
	<-ctx.Done()
	return nil
}

func (p *process) setWaiting(what string) { p.waiting.Store(&what) }

// ready implements /readyz: the caches are synced.
func (p *process) ready(*http.Request) error {
	if what := p.waiting.Load(); what != nil && *what != "" {
		return fmt.Errorf("waiting for %s", *what)
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// everywhere is a runnable for every replica, also for those that do not lead.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }
func (everywhere) NeedLeaderElection() bool          { return false }
