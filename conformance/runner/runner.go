// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/disturb"
	"github.com/solonode/sno/conformance/report"
)

// ErrNoOpenShift is returned if the cluster does not serve the Infrastructure kind.
var ErrNoOpenShift = errors.New("the cluster does not serve OpenShift's kinds")

// Runner runs checks on one cluster. Start begins the static and scheduled ones in parallel; a disruptive one runs
// alone, when its result is requested.
type Runner struct {
	id        string
	target    cluster.Target
	checks    []catalogue.Check
	tiers     map[catalogue.Tier]bool
	selection Selection
	kube      client.Client
	set       kubernetes.Interface
	started   time.Time

	warnings  *warnings
	state     *catalogue.State
	copier    *workloadCopier    // nil without the scheduled tier
	disturber *disturb.Disturber // nil without the disruptive tier
	cancel    context.CancelFunc
	pending   sync.WaitGroup
	serial    sync.Mutex // for disruptive checks

	mu sync.Mutex
	// begun run a check once; results are of those that have ended.
	begun   map[string]func() report.Result
	results map[string]report.Result
}

// Running contains the methods of a Runner, for tests of what uses one.
type Running interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Report() report.Report
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// Connect is New with an interface, which is nil with an error.
func Connect(ctx context.Context, target cluster.Target, selection Selection) (Running, error) {
	r, err := New(ctx, target, selection)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// New connects and reads the cluster once. It changes nothing.
func New(ctx context.Context, target cluster.Target, selection Selection) (*Runner, error) {
	target.Times = cmp.Or(target.Times, cluster.RealTimes())
	if err := target.Times.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{
		id: rand.String(8), target: target, checks: catalogue.All(), selection: selection, tiers: map[catalogue.Tier]bool{},
		begun: map[string]func() report.Result{}, results: map[string]report.Result{}, started: time.Now(), warnings: &warnings{},
	}
	chosen, err := Select(r.checks, selection)
	if err != nil {
		return nil, err
	}
	for _, check := range chosen {
		r.tiers[check.Tier] = true
	}
	config := rest.CopyConfig(target.Config)
	config.WarningHandler, config.WarningHandlerWithContext = r.warnings, nil
	if r.set, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := (&runtime.SchemeBuilder{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install}).AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	if r.kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	state, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if state.Missing["infrastructures.config.openshift.io"] {
		return nil, fmt.Errorf("%w: without infrastructures.config.openshift.io the topology is unknown, so no check can run; "+
			"choose an OpenShift cluster, or install the CustomResourceDefinitions of openshift/api and create Infrastructure cluster", ErrNoOpenShift)
	}
	if state.Infrastructure != nil {
		r.target.Scenario = cmp.Or(r.target.Scenario, state.Infrastructure.Status.InfrastructureName)
	}
	r.target.Scenario = cmp.Or(r.target.Scenario, r.target.Provider) // it identifies reports
	r.target.Config = config
	return r, nil
}

// Start waits until the cluster is stable, reads it, and starts all checks that run in parallel.
func (r *Runner) Start(ctx context.Context) error {
	ctx, r.cancel = context.WithCancel(ctx)
	state, err := r.settle(ctx)
	if err != nil {
		return err
	}
	r.state = state
	r.target.Progressf("Namespaces that count as OpenShift's own: %s", strings.Join(state.Namespaces, ", "))
	if len(state.Others) > 0 {
		r.target.Progressf("Not checked, because they are not part of the release payload (--payload-namespaces): %s", strings.Join(state.Others, ", "))
	}
	if slices.ContainsFunc(r.checks, func(c catalogue.Check) bool {
		return c.NeedsPool && r.selection.skipReason(c) == "" && c.Excluded(state) == ""
	}) {
		if state.Pool, err = cluster.ReadPool(ctx, r.kube); err != nil {
			return err
		}
	}
	if r.tiers[catalogue.Scheduled] {
		program := programOf(r.target.Image, state.Pods)
		r.target.Progressf("Copies of Deployments run image %s, %s", program.image, program.from)
		if r.copier, err = newWorkloadCopier(ctx, r.target, r.set, r.id, program); err != nil {
			return err
		}
	}
	if r.tiers[catalogue.Disruptive] {
		r.disturber = r.newDisturber(state)
	}
	for _, check := range r.checks {
		if r.selection.skipReason(check) == "" && check.Tier != catalogue.Disruptive {
			r.pending.Go(func() { r.execute(ctx, check) })
		}
	}
	return nil
}

// Disturber waits until a cluster is stable, and returns what performs acts on it without checks.
func Disturber(ctx context.Context, target cluster.Target) (*disturb.Disturber, error) {
	r, err := New(ctx, target, Selection{Tiers: []catalogue.Tier{catalogue.Disruptive}})
	if err != nil {
		return nil, err
	}
	state, err := r.settle(ctx)
	if err != nil {
		return nil, err
	}
	return r.newDisturber(state), nil
}

func (r *Runner) newDisturber(before *catalogue.State) *disturb.Disturber {
	return &disturb.Disturber{
		Target: r.target, Client: r.kube, Set: r.set, Before: before,
		NewWorkload: func(ctx context.Context) (string, error) { return r.newWorkload(ctx, before) },
	}
}

func (r *Runner) read(ctx context.Context) (*catalogue.State, error) {
	return cluster.Read(ctx, r.kube, r.target.PayloadNamespaces)
}

// settle waits until every Deployment of OpenShift is available, or has not changed for a while.
func (r *Runner) settle(ctx context.Context) (*catalogue.State, error) {
	var state *catalogue.State
	var last map[string]string
	since := time.Now()
	_, err := cluster.Within(ctx, r.target.Times.Poll, r.target.Times.Settle, func(ctx context.Context) (bool, error) {
		read, err := r.read(ctx)
		if err != nil {
			return false, err
		}
		state = read
		if now := versionsOf(state); !maps.Equal(last, now) {
			last, since = now, time.Now()
		}
		return time.Since(since) >= stablePeriod(state, r.target.Times), nil
	})
	if err == nil && state == nil {
		err = catalogue.ErrRead
	}
	if err != nil {
		return nil, fmt.Errorf("wait until the cluster is stable: %w", err)
	}
	return state, nil
}

// stablePeriod is how long nothing may have changed. It is longer while a Deployment is unavailable, because that may
// be a rollout.
func stablePeriod(s *catalogue.State, times cluster.Times) time.Duration {
	period := times.Quiet / 3
	for _, d := range s.Deployments {
		if s.Unsettled(d.Namespace, d.Name) != "" { // nothing changes during minReadySeconds
			period = max(period, times.Stuck, 2*time.Duration(d.Spec.MinReadySeconds)*time.Second)
		}
	}
	return period
}

func (r *Runner) execute(ctx context.Context, check catalogue.Check) report.Result {
	r.mu.Lock()
	once, begun := r.begun[check.ID]
	if !begun {
		once = sync.OnceValue(func() report.Result {
			result := r.run(ctx, check)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results[check.ID] = result
			return result
		})
		r.begun[check.ID] = once
	}
	r.mu.Unlock()
	return once()
}

// run executes a check unless this run or this cluster does not allow it.
func (r *Runner) run(ctx context.Context, check catalogue.Check) (result report.Result) {
	started, why := time.Now(), ""
	if check.Tier == catalogue.Disruptive {
		why = r.disturber.Unsupported(check.Act)
	}
	status := report.Skipped
	if why == "" {
		status, why = report.NotApplicable, check.Excluded(r.state)
	}
	if why == "" {
		status, why = report.Inconclusive, idleReason(ctx, check, r.target.IdleOperators)
	}
	if why == "" {
		result = execute(ctx, check, &catalogue.Input{State: r.state}, r.observe)
	} else {
		result = check.Result()
		result.Status, result.Reason = status, why
	}
	result.Seconds = time.Since(started).Seconds()
	return result
}

// observe implements observer.
func (r *Runner) observe(ctx context.Context, check catalogue.Check, in *catalogue.Input, stages []catalogue.Stage) (err error) {
	switch {
	case len(check.Copies) > 0:
		in.Copies, err = r.copier.runAll(ctx, in.State, check.Copies, stages)
	case check.Act == catalogue.RequestCertificate:
		in.CSR, err = r.requestCertificate(ctx)
	case check.Act == catalogue.WatchWrites:
		in.Writes, err = r.watchWrites(ctx)
	case check.Act != "":
		in.Records, err = r.disturber.Perform(ctx, check.Act)
	}
	return err
}

// Result waits for the result of one check.
func (r *Runner) Result(ctx context.Context, id string) (report.Result, error) {
	check, err := catalogue.Lookup(id)
	if err != nil {
		return report.Result{}, err
	}
	if why := r.selection.skipReason(check); why != "" {
		result := check.Result()
		result.Reason = why
		return result, nil
	}
	if check.Tier == catalogue.Disruptive {
		r.pending.Wait() // parallel checks must not see a disrupted cluster
		r.serial.Lock()
		defer r.serial.Unlock()
	}
	return r.execute(ctx, check), nil
}

// Report returns a result for every check of the catalogue; unfinished ones are skipped.
func (r *Runner) Report() report.Report {
	out := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Scenario: r.target.Scenario, Description: r.target.Description, Variant: r.target.Variant,
		Provider: r.target.Provider, ControlPlaneOrigin: r.target.ControlPlaneOrigin,
		Topology: report.Topology{Expected: r.target.Expected}, Started: r.started.UTC(), Seconds: time.Since(r.started).Seconds(),
	}
	if r.target.Operators != nil {
		out.Operators = r.target.Operators()
	}
	if r.state != nil && r.state.Infrastructure != nil {
		status := r.state.Infrastructure.Status
		out.Topology.Observed = report.Modes{ControlPlane: string(status.ControlPlaneTopology), Infrastructure: string(status.InfrastructureTopology)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, check := range r.checks {
		result := check.Result()
		result.Reason = r.selection.skipReason(check)
		if ended, ok := r.results[check.ID]; ok {
			result = ended
		} else if result.Reason == "" {
			result.Reason = "the run ended before this check"
		}
		out.Results = append(out.Results, result)
	}
	out.Count()
	return out
}

// Close stops all checks and deletes what they have created, also after ctx is done.
func (r *Runner) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.target.Times.Cleanup)
	defer cancel()
	if r.cancel != nil {
		r.cancel()
	}
	// A running copy could create another namespace after the existing ones have been listed.
	r.pending.Wait()
	if r.copier == nil {
		return nil
	}
	return r.copier.close(ctx)
}
