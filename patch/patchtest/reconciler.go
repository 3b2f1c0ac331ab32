package patchtest

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
)

// ErrNotSettled is returned when a module has something to do after every reconciliation.
var ErrNotSettled = errors.New("it always has something to do")

// Reconciler is a module's controller that reconciles when the test calls it, with the program's rights and without a cache.
type Reconciler struct {
	*Cluster
	Module      controller.Module
	Environment controller.Environment
	// CrashInjector is in the transport of the client.
	CrashInjector *CrashInjector
	// OtherClients are the other clients, called between two reconciliations of Settle.
	OtherClients []func()
	// Logged are the lines that the module has logged.
	Logged []string

	reconcile controller.ReconcileFunc
}

// Reconciler returns a controller with the flags, as after a restart.
func (c *Cluster) Reconciler(flags ...string) *Reconciler {
	c.Helper()
	return c.ReconcilerOf(func(r *Reconciler) (controller.ReconcileFunc, error) { return r.Module.Reconciler(r.Environment) }, flags...)
}

// ReconcilerOf is Reconciler with a function that builds what reconciles from the Module and the Environment.
func (c *Cluster) ReconcilerOf(build func(*Reconciler) (controller.ReconcileFunc, error), flags ...string) *Reconciler {
	c.Helper()
	ours, known := c.Suite.clients[c.Server]
	if !known { // a client certificate takes long to create
		config := c.config()
		ours.CrashInjector = &CrashInjector{}
		config.Wrap(ours.Wrap)
		var err error
		ours.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: c.Server.Scheme()})
		c.NoError(err)
		c.Suite.clients[c.Server] = ours
	}
	ours.Reset()
	r := &Reconciler{Cluster: c, Module: c.Suite.Module(), CrashInjector: ours.CrashInjector}
	options := controller.Options{}
	set := flag.NewFlagSet(c.Suite.Program, flag.ContinueOnError)
	options.BindFlags(set)
	r.Module.BindFlags(set)
	c.NoError(set.Parse(flags))
	c.NoError(errors.Join(options.Validate(), r.Module.Validate()))
	var err error
	r.Environment, err = controller.OnceEnvironment(ours, options, r.Module)
	c.NoError(err)
	r.Environment.Once = false
	r.reconcile, err = build(r)
	c.NoError(err)
	return r
}

// Step reconciles once.
func (r *Reconciler) Step() (patch.Result, error) {
	ctx := logr.NewContext(r.Context(), funcr.New(func(_, line string) { r.Logged = append(r.Logged, line) }, funcr.Options{}))
	cluster, err := r.Environment.Cluster(ctx)
	if err != nil {
		return patch.Result{}, err
	}
	_, result, err := r.reconcile(ctx, cluster)
	return result, err
}

// Try reconciles until the module does not ask for it soon, as a controller does.
func (r *Reconciler) Try() (patch.Result, error) {
	for range 20 {
		if result, err := r.Step(); err != nil || result.After == 0 || result.After > controller.RequeueDelay {
			return result, err
		}
	}
	return patch.Result{}, ErrNotSettled
}

// Reconcile is Try, and ends the test on an error.
func (r *Reconciler) Reconcile() patch.Result {
	r.Helper()
	result, err := r.Try()
	r.NoError(err)
	return result
}

// Settle calls the other clients and reconciles in turn until the module writes nothing, and returns the last result.
func (r *Reconciler) Settle() patch.Result {
	r.Helper()
	for range 12 {
		r.act()
		var result patch.Result
		if writes := r.Server.WritesDuring(r, r.Suite.User(), func() { result = r.Reconcile() }); len(writes) == 0 {
			return result
		}
	}
	r.Fatal(ErrNotSettled)
	return patch.Result{}
}

func (r *Reconciler) act() {
	for _, act := range r.OtherClients {
		act()
	}
}

// CheckResult fails the test unless the result has the state, the reason and, in its message, the texts.
func (r *Reconciler) CheckResult(got patch.Result, state patch.State, reason string, texts ...string) {
	r.Helper()
	lacks := func(text string) bool { return !strings.Contains(got.Message, text) }
	if got.State != state || got.Reason != reason || slices.ContainsFunc(texts, lacks) {
		r.Errorf("%v, want %s (%s) with %q", got, state, reason, texts)
	}
}

// CheckNoWrites fails the test for any write request in three reconciliations.
func (r *Reconciler) CheckNoWrites() {
	r.Helper()
	r.Server.NoWrites(r, r.Suite.User(), func() {
		for range 3 {
			r.Reconcile()
		}
	})
}

// UntilCrash reconciles, ignoring errors, until the CrashInjector has crashed the process or nothing is left to do, and reports whether it has crashed.
func (r *Reconciler) UntilCrash() bool {
	for range 20 {
		if result, err := r.Step(); r.CrashInjector.Crashed() || (err == nil && result.After == 0 && result.State != patch.Progressing) {
			break
		}
		r.act()
	}
	return r.CrashInjector.Crashed()
}

// CrashAtEveryWrite runs a story in which the process crashes at its first write request, then one in which it crashes at its second, and so
// on until one ends without a crash: with requests that were never sent, and with lost answers. The story calls crash for the process, and
// returns whether it has crashed. Fewer than least writes fail the test.
func CrashAtEveryWrite(t *testing.T, least int, story func(t *testing.T, crash func(*Reconciler)) bool) {
	t.Helper()
	for name, death := range map[string]CrashMode{"request lost": CrashBeforeSend, "answer lost": CrashAfterSend} {
		t.Run(name, func(t *testing.T) {
			n := 1
			for ; story(t, func(r *Reconciler) { r.CrashInjector.CrashAtWrite(n, death) }); n++ {
				if t.Failed() {
					t.Fatalf("at write %d", n)
				}
			}
			if n <= least {
				t.Errorf("%d writes, want at least %d", n-1, least)
			}
		})
	}
}
