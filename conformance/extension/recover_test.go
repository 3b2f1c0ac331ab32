// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/traffic"
)

const (
	stableFor = 300 * time.Millisecond
	lostAfter = 2 * time.Second
	outage    = 1500 * time.Millisecond
)

// application is a server that can be unavailable.
type application struct {
	*httptest.Server
	down atomic.Bool
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if a.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *application) unavailable(context.Context) (*catalogue.Disruption, error) {
	a.down.Store(true)
	defer a.down.Store(false)
	<-time.After(outage)
	return &catalogue.Disruption{}, nil
}

// newRecovery returns one whose requests are answered.
func (a *application) newRecovery(t *testing.T, limit time.Duration) *recovery {
	t.Helper()
	r := &recovery{users: traffic.Start(t.Context(), traffic.Endpoint{URL: a.URL}), stable: stableFor, limit: limit}
	t.Cleanup(func() { r.users.Stop() })
	if err := r.users.WaitAnswered(t.Context(), stableFor, time.Minute); err != nil {
		t.Fatal(err)
	}
	return r
}

// Each step has its own requests.
func TestRecovery(t *testing.T) {
	a := newApplication(t)
	nothing := func(context.Context) (*catalogue.Disruption, error) { return &catalogue.Disruption{}, nil }
	r := a.newRecovery(t, time.Minute)
	if err := r.run(t.Context(), []step{
		{"nothing", nothing}, {"outage", a.unavailable}, {"nothing again", nothing},
	}); err != nil {
		t.Error(err)
	}
	if len(r.rows) != 3 {
		t.Fatalf("%d rows: %+v", len(r.rows), r.rows)
	}
	for i, row := range r.rows {
		var sent, failed int
		var longest float64
		if _, err := fmt.Sscanf(row.Measured, "%d sent, %d failed, longest outage %f s", &sent, &failed, &longest); err != nil {
			t.Fatalf("%q: %v", row.Measured, err)
		}
		// A request that was sent before the outage can be the first that fails.
		if disturbed := i == 1; sent < 2 || (failed > 0) != disturbed || (longest > outage.Seconds()-0.2) != disturbed || !row.Held {
			t.Errorf("%+v", row)
		}
	}
}

// A step that fails is the last one.
func TestNoRecovery(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*application) (*catalogue.Disruption, error)
		want string
	}{
		"traffic is lost": {func(a *application) (*catalogue.Disruption, error) {
			a.down.Store(true)
			return &catalogue.Disruption{}, nil
		}, "traffic is lost"},
		"the act does not happen": {func(*application) (*catalogue.Disruption, error) { return nil, catalogue.ErrNotPerformed }, catalogue.ErrNotPerformed.Error()},
		"an operand does not recover": {func(*application) (*catalogue.Disruption, error) {
			return &catalogue.Disruption{Operands: []catalogue.OperandDisruption{{Name: "Deployment a/b", Failure: "0 of 1 pods are available"}}}, nil
		}, "Deployment a/b: 0 of 1 pods are available"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t)
			next := func(context.Context) (*catalogue.Disruption, error) {
				t.Error("the next step was performed")
				return &catalogue.Disruption{}, nil
			}
			r := a.newRecovery(t, lostAfter)
			one := func(context.Context) (*catalogue.Disruption, error) { return test.act(a) }
			err := r.run(t.Context(), []step{{"one", one}, {"two", next}})
			if !errors.Is(err, errUnrecovered) || !strings.Contains(err.Error(), "one: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if len(r.rows) != 1 || r.rows[0].Held {
				t.Errorf("rows: %+v", r.rows)
			}
		})
	}
}

// Without a folder, a Route or a cluster nothing begins.
func TestRecoverUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no folder": {}, "route": {"-o", t.TempDir(), "--route", "canary"}, "no name": {"-o", t.TempDir(), "--route", "a/"}, "three parts": {"-o", t.TempDir(), "--route", "a/b/c"},
		"no cluster": {"-o", t.TempDir(), "--kubeconfig", "none"}, "tier": {"-o", t.TempDir(), "--tiers", "unknown"}, "outage": {"-o", t.TempDir(), "--outage-command", "true"},
	} {
		f := &fake{}
		if code, _, problem := f.run(t, nil, append([]string{"recover"}, args...)...); code != exitBadInput || problem == "" || len(f.requested) > 0 {
			t.Errorf("%s: exit code %d, %s, requested %v", name, code, problem, f.requested)
		}
	}
}
