// SPDX-License-Identifier: Apache-2.0

package modules

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
	"github.com/solonode/sno/testcluster/apiserver"
)

// ErrNotSettled is returned if a module does not become stable.
var ErrNotSettled = errors.New("the module writes at every reconciliation")

// Reconciler is a module that reconciles when the test calls it, with the program's permissions and without a cache.
type Reconciler struct {
	*Cluster
	Module        controller.Module
	Environment   controller.Environment
	CrashInjector *apiserver.CrashInjector // in the transport of the client
	// OtherClients are called before each reconciliation of Settle.
	OtherClients []func()
	Logged       []string // lines that the module has logged

	reconcile controller.ReconcileFunc
}

// Reconciler returns a Reconciler with the flags, as after a restart.
func (c *Cluster) Reconciler(flags ...string) *Reconciler {
	c.Helper()
	return c.ReconcilerOf(func(r *Reconciler) (controller.ReconcileFunc, error) { return r.Module.Reconciler(r.Environment) }, flags...)
}

// ReconcilerOf is Reconciler with another function that builds the ReconcileFunc.
func (c *Cluster) ReconcilerOf(build func(*Reconciler) (controller.ReconcileFunc, error), flags ...string) *Reconciler {
	c.Helper()
	cached, known := c.Suite.clients[c.Server]
	if !known { // creating a client certificate takes long
		config := c.config()
		cached.CrashInjector = &apiserver.CrashInjector{}
		config.Wrap(cached.Wrap)
		var err error
		cached.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: c.Server.Scheme()})
		c.NoError(err)
		c.Suite.clients[c.Server] = cached
	}
	cached.Reset()
	r := &Reconciler{Cluster: c, Module: c.Suite.Module(), CrashInjector: cached.CrashInjector}
	options := controller.Options{}
	set := flag.NewFlagSet(c.Suite.Program(), flag.ContinueOnError)
	options.BindFlags(set)
	r.Module.BindFlags(set)
	c.NoError(set.Parse(flags))
	c.NoError(errors.Join(options.Validate(), r.Module.Validate()))
	var err error
	r.Environment, err = controller.OnceEnvironment(cached, options, r.Module)
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

// Try reconciles until the module does not ask for another reconciliation within RequeueDelay.
func (r *Reconciler) Try() (patch.Result, error) {
	for range 20 {
		if result, err := r.Step(); err != nil || result.After == 0 || result.After > controller.RequeueDelay {
			return result, err
		}
	}
	return patch.Result{}, ErrNotSettled
}

// Reconcile is Try. It ends the test on an error.
func (r *Reconciler) Reconcile() patch.Result {
	r.Helper()
	result, err := r.Try()
	r.NoError(err)
	return result
}

// Settle alternates other clients and reconciliations until the module writes nothing, and returns the last result.
func (r *Reconciler) Settle() patch.Result {
	r.Helper()
	for range 12 {
		r.runOtherClients()
		var result patch.Result
		if writes := r.Server.WritesDuring(r, r.Suite.User(), func() { result = r.Reconcile() }); len(writes) == 0 {
			return result
		}
	}
	r.Fatal(ErrNotSettled)
	return patch.Result{}
}

func (r *Reconciler) runOtherClients() {
	for _, run := range r.OtherClients {
		run()
	}
}

// CheckResult fails the test unless the result has the state, the reason and the texts in its message.
func (r *Reconciler) CheckResult(got patch.Result, state patch.State, reason string, texts ...string) {
	r.Helper()
	lacks := func(text string) bool { return !strings.Contains(got.Message, text) }
	if got.State != state || got.Reason != reason || slices.ContainsFunc(texts, lacks) {
		r.Errorf("%v, want %s (%s) with %q", got, state, reason, texts)
	}
}

// CheckNoWrites fails the test for each write request in three reconciliations.
func (r *Reconciler) CheckNoWrites() {
	r.Helper()
	r.Server.NoWrites(r, r.Suite.User(), func() {
		for range 3 {
			r.Reconcile()
		}
	})
}

// UntilCrash reconciles, ignoring errors, until a crash or until nothing is left to do. It reports a crash.
func (r *Reconciler) UntilCrash() bool {
	for range 20 {
		if result, err := r.Step(); r.CrashInjector.Crashed() || (err == nil && result.After == 0 && result.State != patch.Progressing) {
			break
		}
		r.runOtherClients()
	}
	return r.CrashInjector.Crashed()
}

// CrashAtEveryWrite runs the scenario with a crash at each of its writes in turn, of which there are at least
// minWrites. The scenario calls crash for the process and returns whether it has crashed.
func CrashAtEveryWrite(t *testing.T, minWrites int, scenario func(t *testing.T, crash func(*Reconciler)) bool) {
	t.Helper()
	for name, mode := range map[string]apiserver.CrashMode{"request lost": apiserver.CrashBeforeSend, "answer lost": apiserver.CrashAfterSend} {
		t.Run(name, func(t *testing.T) {
			n := 1
			for ; scenario(t, func(r *Reconciler) { r.CrashInjector.CrashAtWrite(n, mode) }); n++ {
				if t.Failed() {
					t.Fatalf("at write %d", n)
				}
			}
			if n <= minWrites {
				t.Errorf("%d writes, want at minWrites %d", n-1, minWrites)
			}
		})
	}
}
