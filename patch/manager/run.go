package manager

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/topology"
)

// Infrastructure is the object that says what kind of cluster this is. The leader election takes its durations from it, and
// every module its topology.
var Infrastructure = Object{GroupVersionKind: configv1.GroupVersion.WithKind("Infrastructure"), Name: "cluster"}

// classChanged ends one generation of the manager when the topology asks for other leader-election durations.
type classChanged struct{ mode configv1.TopologyMode }

func (c classChanged) Error() string {
	return fmt.Sprintf("the topology %s asks for other leader-election durations", c.mode)
}

// errKindsAppeared ends one generation of the manager when an optional kind comes to be served.
var errKindsAppeared = errors.New("the cluster serves kinds that it did not serve before")

const (
	// pollServed is how often a kind is looked for that the API server does not serve yet. It only reads.
	pollServed = 2 * time.Second
	// pollOptional is the same for the kinds that need not be served.
	pollOptional = 15 * time.Second
	// firstRead bounds the read of the topology before the first leader election; the watch corrects a failed one.
	firstRead = 10 * time.Second
	// shutdown bounds how long running reconciles are waited for.
	shutdown = 20 * time.Second
)

// Run runs the modules' controllers until the context ends, which is no error. name is the process's name, in its Lease and
// its events.
//
// The durations of leader election cannot be changed while an election runs. When the topology changed at run time, and the modules
// had time to follow it, Run gives up the Lease, ends the controllers in good order and starts them again with the new
// durations, in the same process.
func Run(ctx context.Context, restConfig *rest.Config, name string, options Options, modules ...Module) error {
	if err := options.Validate(); err != nil {
		return err
	}
	counters, err := metrics.New(crmetrics.Registry)
	if err != nil {
		return err
	}
	defer collectLess()()
	log := logr.FromContextOrDiscard(ctx)
	restConfig = unthrottled(restConfig)
	identity, err := newIdentity()
	if err != nil {
		return err
	}
	mode := firstTopology(ctx, restConfig)
	for {
		p := &process{
			name: name, identity: identity, options: options, modules: modules, rest: restConfig, metrics: counters,
			class: topology.LeaderElection(mode), primed: make(chan struct{}),
		}
		err := p.run(ctx)
		if ctx.Err() != nil {
			if err != nil {
				return nil // something of it may still run, so the Lease has to expire
			}
			if err := p.giveUp(ctx); err != nil {
				log.Info("Lease may have to expire before somebody else leads", "cause", err.Error())
			}
			return nil
		}
		if errors.Is(err, errKindsAppeared) {
			log.Info("Cluster serves more kinds, starting again")
			continue
		}
		var changed classChanged
		if !errors.As(err, &changed) {
			return err
		}
		mode = changed.mode
		log.Info("Leader election follows the topology", "controlPlaneTopology", string(mode),
			"leaseDuration", topology.LeaderElection(mode).LeaseDuration.String())
	}
}

// unthrottled leaves it to the API server's priority and fairness to slow us down. Client-go's own limit of 5 requests a second is
// there for programs that list the world in a loop; a change of topology needs three requests in a row, at once.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	return config
}

// firstTopology reads the control-plane topology once. When it cannot be read, the ordinary durations are used until the
// watch delivers it.
func firstTopology(ctx context.Context, restConfig *rest.Config) configv1.TopologyMode {
	log := logr.FromContextOrDiscard(ctx)
	mode, err := func() (configv1.TopologyMode, error) {
		ctx, cancel := context.WithTimeout(ctx, firstRead)
		defer cancel()
		reader, err := client.New(restConfig, client.Options{})
		if err != nil {
			return "", err
		}
		u := Infrastructure.Unstructured()
		if err := reader.Get(ctx, Infrastructure.Key(), u); err != nil {
			return "", err
		}
		cluster, err := topology.FromUnstructured(u)
		return cluster.ControlPlane.Mode, err
	}()
	if err != nil {
		log.Info("Topology is not known yet, starting with the ordinary leader-election durations", "cause", err.Error())
		return configv1.HighlyAvailableTopologyMode
	}
	return mode
}

// process is one generation of the manager, between two changes of the leader-election class.
type process struct {
	name string
	// identity is the process's name in its Lease.
	identity string
	options  Options
	modules  []Module
	rest     *rest.Config
	metrics  *metrics.Metrics
	class    topology.LeaderElectionClass

	manager ctrl.Manager
	served  meta.RESTMapper
	made    atomic.Bool
	primed  chan struct{}
	waiting atomic.Pointer[string]
	// absent lists the optional kinds that are not served; it is set before primed is closed.
	absent []schema.GroupVersionKind
	// aside are the caches of what is MetadataOnly.
	aside map[Object]cache.Cache
}

// objects lists what is read, each once although several modules may read it.
func (p *process) objects() []Object {
	return p.selected([]Object{Infrastructure}, false)
}

// asides lists what is MetadataOnly.
func (p *process) asides() []Object { return p.selected(nil, true) }

func (p *process) selected(objects []Object, metadataOnly bool) []Object {
	for _, m := range p.modules {
		for _, o := range m.Objects() {
			if o.MetadataOnly == metadataOnly && !slices.Contains(objects, o) {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

func (p *process) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := logr.FromContextOrDiscard(ctx)

	serving := metricsserver.Options{BindAddress: p.options.MetricsBindAddress}
	if p.options.MetricsSecure {
		serving.SecureServing = true
		serving.FilterProvider = authorized
	}
	caches, err := cacheOptions(p.objects())
	if err != nil {
		return err
	}
	lock, err := p.lock()
	if err != nil {
		return err
	}
	managing := ctrl.Options{
		Scheme: scheme.Scheme,
		Logger: log,
		// Runnables get the values of the context, the logger above all; the manager itself ends them, in its order.
		BaseContext:                   func() context.Context { return context.WithoutCancel(ctx) },
		MapperProvider:                p.mapper,
		Cache:                         caches,
		NewCache:                      cache.New,
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                       serving,
		HealthProbeBindAddress:        p.options.HealthProbeBindAddress,
		LeaderElection:                p.options.LeaderElect,
		LeaderElectionID:              p.name + ".sno.solonode.github.io",
		LeaderElectionNamespace:       p.options.LeaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &p.class.LeaseDuration,
		RenewDeadline:                 &p.class.RenewDeadline,
		RetryPeriod:                   &p.class.RetryPeriod,
		GracefulShutdownTimeout:       ptr.To(shutdown),
		// A controller is made again under its name in every generation.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	if lock != nil {
		managing.LeaderElectionResourceLockInterface = lock
	}
	p.manager, err = ctrl.NewManager(p.rest, managing)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	p.made.Store(true)
	if lock != nil {
		lock.LockConfig.EventRecorder = p.manager.GetEventRecorderFor(p.identity) //nolint:staticcheck,nolintlint // a lock takes no other, and only newer releases call it old
	}
	p.aside = map[Object]cache.Cache{}
	for _, o := range p.asides() {
		made, err := o.metadataCache(p.manager)
		if err != nil {
			return err
		}
		if err := p.manager.Add(made); err != nil {
			return fmt.Errorf("adding the caches: %w", err)
		}
		p.aside[o] = made
	}
	p.setWaiting("its caches")
	if err := p.manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /healthz: %w", err)
	}
	if err := p.manager.AddReadyzCheck("caches", p.ready); err != nil {
		return fmt.Errorf("adding /readyz: %w", err)
	}
	election := &reelection{running: p.class, begin: func(mode configv1.TopologyMode) { cancel(classChanged{mode}) }}
	defer election.end()
	follow := func(mode configv1.TopologyMode) {
		if p.options.LeaderElect {
			election.observe(mode)
		}
	}
	more := func() { cancel(errKindsAppeared) }
	if err := p.manager.Add(everywhere{func(ctx context.Context) error { return p.prime(ctx, follow, more) }}); err != nil {
		return fmt.Errorf("adding the caches: %w", err)
	}
	if err := p.manager.Add(onLeader{p.control}); err != nil {
		return fmt.Errorf("adding the controllers: %w", err)
	}
	err = p.manager.Start(ctx)
	if changed := (classChanged{}); errors.As(context.Cause(ctx), &changed) || errors.Is(context.Cause(ctx), errKindsAppeared) {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// prime waits for every kind to be served, fills the caches and watches the topology for the leader election. It runs on
// every replica, so that one that becomes leader starts with warm caches.
func (p *process) prime(ctx context.Context, follow func(configv1.TopologyMode), more func()) error {
	if err := p.waitServed(ctx, kinds(append(p.objects(), p.asides()...), false)); err != nil {
		return nil // the context ended
	}
	p.absent = p.notServed(kinds(p.objects(), true))
	for _, o := range p.objects() {
		if slices.Contains(p.absent, o.GroupVersionKind) {
			continue
		}
		u := o.Unstructured()
		informer, err := p.manager.GetCache().GetInformer(ctx, u, cache.BlockUntilSynced(false))
		if err != nil {
			return ignoreEnd(ctx, fmt.Errorf("watching %s: %w", o.Kind, err))
		}
		if o == Infrastructure {
			observe := func(obj any) { p.observeTopology(ctx, obj, follow) }
			if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    observe,
				UpdateFunc: func(_, obj any) { observe(obj) },
			}); err != nil {
				return fmt.Errorf("watching %s: %w", o.Kind, err)
			}
		}
	}
	for o, aside := range p.aside {
		if _, err := aside.GetInformer(ctx, o.metadata(), cache.BlockUntilSynced(false)); err != nil {
			return ignoreEnd(ctx, fmt.Errorf("watching %s: %w", o.Kind, err))
		}
		if !aside.WaitForCacheSync(ctx) {
			return nil // the context ended
		}
	}
	if !p.manager.GetCache().WaitForCacheSync(ctx) {
		return nil // the context ended
	}
	p.setWaiting("")
	close(p.primed)
	go giveBack(ctx)
	if len(p.absent) == 0 {
		<-ctx.Done()
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Working without kinds that the cluster does not serve", "kinds", fmt.Sprint(p.absent))
	if err := wait.PollUntilContextCancel(ctx, pollOptional, false, func(context.Context) (bool, error) {
		return p.appeared(p.absent), nil
	}); err == nil {
		more()
	}
	return nil
}

// notServed lists those of the kinds that the API server says it does not serve. One that does not answer says nothing.
func (p *process) notServed(wanted []schema.GroupVersionKind) []schema.GroupVersionKind {
	var absent []schema.GroupVersionKind
	for _, gvk := range wanted {
		if _, err := p.served.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil && isNotServed(err) {
			absent = append(absent, gvk)
		}
	}
	return absent
}

// appeared says that the API server serves one of the kinds now. One that does not answer, as during its restart on a single node, says
// nothing: to start again on its silence would give the Lease away in an outage.
func (p *process) appeared(absent []schema.GroupVersionKind) bool {
	return slices.ContainsFunc(absent, func(gvk schema.GroupVersionKind) bool {
		_, err := p.served.RESTMapping(gvk.GroupKind(), gvk.Version)
		return err == nil
	})
}

func (p *process) observeTopology(ctx context.Context, obj any, follow func(configv1.TopologyMode)) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	cluster, err := topology.FromUnstructured(u)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Topology cannot be read, keeping the last one")
		return
	}
	follow(cluster.ControlPlane.Mode)
}

// waitServed waits until the API server serves every kind, and says which it waits for whenever that changes.
func (p *process) waitServed(ctx context.Context, wanted []schema.GroupVersionKind) error {
	log := logr.FromContextOrDiscard(ctx)
	said := ""
	return wait.PollUntilContextCancel(ctx, pollServed, true, func(ctx context.Context) (bool, error) {
		var missing []string
		for _, gvk := range wanted {
			if _, err := p.served.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
				if !isNotServed(err) && said == "" {
					log.Info("API server does not answer", "cause", err.Error())
				}
				missing = append(missing, gvk.Kind+"."+gvk.GroupVersion().String())
			}
		}
		slices.Sort(missing)
		text := strings.Join(missing, ", ")
		if text != said && text != "" {
			log.Info("Waiting for the cluster to serve kinds", "kinds", text)
		}
		if said != "" && text == "" {
			log.Info("Cluster serves every kind")
		}
		said = text
		p.setWaiting(text)
		return len(missing) == 0, nil
	})
}

// control adds the controllers once this process leads and its caches are filled.
func (p *process) control(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.primed:
	}
	cached, live := reader{p.manager.GetClient(), p.absent, &decoded{}}, reader{p.manager.GetAPIReader(), nil, &decoded{}}
	for _, m := range p.modules {
		env := Environment{
			Options: p.options, Metrics: p.metrics, Client: p.manager.GetClient(), Live: live,
			Reader: cached, Absent: p.absent, aside: p.aside,
		}
		if err := m.Setup(p.manager, env); err != nil {
			return ignoreEnd(ctx, fmt.Errorf("setting up %s: %w", m.Name(), err))
		}
	}
	<-ctx.Done()
	return nil
}

func (p *process) setWaiting(what string) { p.waiting.Store(&what) }

// ready is /readyz: the caches are synced.
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

// everywhere runs on every replica, onLeader only on the one that leads.
type everywhere struct{ run func(context.Context) error }

func (e everywhere) Start(ctx context.Context) error { return e.run(ctx) }
func (everywhere) NeedLeaderElection() bool          { return false }

type onLeader struct{ run func(context.Context) error }

func (l onLeader) Start(ctx context.Context) error { return l.run(ctx) }
func (onLeader) NeedLeaderElection() bool          { return true }
