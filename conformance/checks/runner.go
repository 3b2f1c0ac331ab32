// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/conformance/report"
)

// ErrNoOpenShift is returned if the cluster does not serve the Infrastructure kind.
var ErrNoOpenShift = errors.New("the cluster does not serve OpenShift's kinds")

// Runner runs checks on one cluster. Start begins the static and scheduled ones in parallel; a disruptive one runs
// alone, when its result is requested.
type Runner struct {
	target    Target
	checks    []Check
	tiers     map[Tier]bool
	selection Selection
	kube      client.Client
	set       kubernetes.Interface
	started   time.Time

	warnings *warnings
	input    *Input
	cancel   context.CancelFunc
	pending  sync.WaitGroup
	serial   sync.Mutex // for disruptive checks

	mu      sync.Mutex
	results map[string]*outcome
}

type outcome struct {
	done   chan struct{}
	result report.Result
}

// NewRunner connects and reads the cluster once. It changes nothing.
func NewRunner(ctx context.Context, target Target, selection Selection) (*Runner, error) {
	if err := target.Times.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{
		target: target, checks: Catalogue(), selection: selection, tiers: map[Tier]bool{}, results: map[string]*outcome{}, started: time.Now(), warnings: &warnings{},
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
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	if r.kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	state, err := Read(ctx, r.kube, r.target.PayloadNamespaces)
	if err != nil {
		return nil, err
	}
	if state.Missing["infrastructures.config.openshift.io"] {
		return nil, fmt.Errorf("%w: without infrastructures.config.openshift.io the topology is unknown, so no check can run; "+
			"choose an OpenShift cluster, or install the CustomResourceDefinitions of openshift/api and create Infrastructure cluster", ErrNoOpenShift)
	}
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
	r.printNamespaces(state)
	if slices.ContainsFunc(r.checks, func(c Check) bool {
		return c.NeedsPool && r.selection.skipReason(c) == "" && (c.NotApplicable == nil || c.NotApplicable(state) == "")
	}) {
		if state.Pool, err = readPool(ctx, r.kube); err != nil {
			return err
		}
	}
	r.input = &Input{State: state, Times: r.target.Times, IdleOperators: r.target.IdleOperators}
	if r.tiers[Scheduled] {
		program := programOf(r.target.Image, state.Pods)
		r.progressf("Copies of Deployments run image %s, %s", program.image, program.from)
		if r.input.Copier, err = newWorkloadCopier(ctx, r.target, r.set, r.kube, program); err != nil {
			return err
		}
	}
	if r.tiers[Disruptive] {
		r.input.Disruptor = r.newDisruptor(state)
	}
	for _, check := range r.checks {
		if r.selection.skipReason(check) == "" && check.Tier != Disruptive {
			r.pending.Add(1)
			go func() {
				defer r.pending.Done()
				r.execute(ctx, check)
			}()
		}
	}
	return nil
}

func (r *Runner) newDisruptor(before *State) *Disruptor {
	return &Disruptor{
		cluster: &targetCluster{target: r.target, kube: r.kube, set: r.set, checks: r.checks, before: before}, notPerformed: map[string]error{},
	}
}

func (r *Runner) progressf(format string, args ...any) {
	if r.target.Progress != nil {
		_, _ = fmt.Fprintf(r.target.Progress, format+"\n", args...)
	}
}

func (r *Runner) printNamespaces(state *State) {
	r.progressf("Namespaces that count as OpenShift's own: %s", strings.Join(state.Namespaces, ", "))
	if len(state.Others) > 0 {
		r.progressf("Not checked, because they are not part of the release payload (--payload-namespaces): %s", strings.Join(state.Others, ", "))
	}
}

// settle waits until every Deployment of OpenShift is available, or has not changed for a while.
func (r *Runner) settle(ctx context.Context) (*State, error) {
	var state *State
	var last map[string]string
	since := time.Now()
	_, err := within(ctx, r.target.Times.Poll, r.target.Times.Settle, func(ctx context.Context) (bool, error) {
		read, err := Read(ctx, r.kube, r.target.PayloadNamespaces)
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
		err = ErrRead
	}
	if err != nil {
		return nil, fmt.Errorf("wait until the cluster is stable: %w", err)
	}
	return state, nil
}

// stablePeriod is how long nothing may have changed. It is longer while a Deployment is unavailable, because that may
// be a rollout.
func stablePeriod(s *State, times Times) time.Duration {
	var rolling []appsv1.Deployment
	for _, d := range s.Deployments {
		if unsettled(s, d.Namespace, d.Name) != "" {
			rolling = append(rolling, d)
		}
	}
	if len(rolling) == 0 {
		return times.Quiet / 3
	}
	return times.stuck(rolling)
}

func (r *Runner) execute(ctx context.Context, check Check) report.Result {
	r.mu.Lock()
	o, begun := r.results[check.ID]
	if !begun {
		o = &outcome{done: make(chan struct{})}
		r.results[check.ID] = o
	}
	r.mu.Unlock()
	if begun {
		<-o.done
		return o.result
	}
	in := *r.input // each check records its own results
	result := Execute(ctx, check, &in)
	r.mu.Lock()
	o.result = result
	r.mu.Unlock()
	close(o.done)
	return result
}

// Result waits for the result of one check.
func (r *Runner) Result(ctx context.Context, id string) (report.Result, error) {
	check, err := Lookup(id)
	if err != nil {
		return report.Result{}, err
	}
	if why := r.selection.skipReason(check); why != "" {
		result := check.Result()
		result.Reason = why
		return result, nil
	}
	if check.Tier == Disruptive {
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
	if r.input != nil && r.input.State.Infrastructure != nil {
		status := r.input.State.Infrastructure.Status
		out.Topology.Observed = report.Modes{ControlPlane: string(status.ControlPlaneTopology), Infrastructure: string(status.InfrastructureTopology)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, check := range r.checks {
		result := check.Result()
		result.Reason = r.selection.skipReason(check)
		if o := r.results[check.ID]; o != nil && o.result.ID != "" {
			result = o.result
		} else if result.Reason == "" {
			result.Reason = "the run ended before this check"
		}
		out.Results = append(out.Results, result)
	}
	out.Count()
	return out
}

// Collect writes events, warnings, objects and, for a cluster that the run created, logs into a folder. What may be
// secret is withheld.
func (r *Runner) Collect(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("create the folder for artifacts: %w", err)
	}
	state, err := Read(ctx, r.kube, r.target.PayloadNamespaces)
	if err != nil {
		return err
	}
	events, err := r.set.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("%w: list events: %w", ErrRead, err)
	}
	var errs []error
	for name, what := range map[string]any{"objects.yaml": withoutSecrets(state), "events.yaml": trimmed(events.Items), "warnings.yaml": r.warnings.all()} {
		text, err := yaml.Marshal(what)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), redacted(text), 0o600))
	}
	if r.target.Logs != nil {
		errs = append(errs, r.target.Logs(filepath.Join(folder, "logs")))
	}
	return errors.Join(errs...)
}

func trimmed(events []corev1.Event) []string {
	slices.SortFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%s %s %s/%s %s: %s", e.LastTimestamp.UTC().Format(time.RFC3339), e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return lines
}

// Close stops all checks and deletes what they have created, also after ctx is done.
func (r *Runner) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.target.Times.Cleanup)
	defer cancel()
	if r.target.Stop != nil {
		defer r.target.Stop()
	}
	if r.cancel != nil {
		r.cancel()
	}
	// A running copy could create another namespace after the existing ones have been listed.
	r.pending.Wait()
	if r.input == nil || r.input.Copier == nil {
		return nil
	}
	return r.input.Copier.close(ctx)
}
