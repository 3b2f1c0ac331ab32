// SPDX-License-Identifier: Apache-2.0

//go:build unix

package extension

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

func (a *application) unavailable(ctx context.Context, length time.Duration) (*catalogue.Disruption, error) {
	a.down.Store(true)
	defer a.down.Store(false)
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
	return &catalogue.Disruption{}, nil
}

// clients are sno-tests and an outside client, which is a loop of curl as a person would write it.
func (a *application) clients(t *testing.T) []trafficClient {
	t.Helper()
	endpoint := traffic.Endpoint{URL: a.URL}
	const loop = `sh -c 'while sleep 0.05; do curl -fsS -m 1 -o /dev/null $0 && echo ok || echo failed; done'`
	return []trafficClient{
		{name: ownClient, requester: traffic.Start(t.Context(), endpoint)},
		{name: "outside", requester: traffic.Listen(t.Context(), loop, endpoint, nil)},
	}
}

// Each step has its own requests, of each client.
func TestRecovery(t *testing.T) {
	a := newApplication(t)
	nothing := func(context.Context) (*catalogue.Disruption, error) { return &catalogue.Disruption{}, nil }
	r := recovery{stable: stableFor, limit: time.Minute, clients: a.clients(t), steps: []step{
		{name: "nothing", act: nothing},
		{name: "outage", act: func(ctx context.Context) (*catalogue.Disruption, error) { return a.unavailable(ctx, outage) }},
		{name: "nothing again", act: nothing},
	}}
	for _, c := range r.clients {
		if err := c.WaitAnswered(t.Context(), stableFor, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t.Context())
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
	all := r.requests()
	if len(all) != 6 {
		t.Fatalf("%d rows: %+v", len(all), all)
	}
	for _, row := range all {
		if disturbed := row.step == "outage"; row.sent < 2 || (row.failed > 0) != disturbed || (row.silence >= outage) != disturbed || !row.recovered {
			t.Errorf("%+v", row)
		}
	}
	var table bytes.Buffer
	if err := writeRequests(&table, all); err != nil || strings.Count(table.String(), "\n") != 7 {
		t.Errorf("%v\n%s", err, table.String())
	}
	if rows := measurements(all); len(rows) != 6 || !rows[2].Held || !strings.Contains(rows[2].Measured, " failed, longest time without an answer ") {
		t.Errorf("measurements: %+v", rows)
	}
}

// A step that fails is the last one.
func TestNoRecovery(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*application) act
		want string
	}{
		"traffic is lost": {func(a *application) act {
			return func(context.Context) (*catalogue.Disruption, error) {
				a.down.Store(true)
				return &catalogue.Disruption{}, nil
			}
		}, "traffic is lost"},
		"the act does not happen": {func(*application) act {
			return func(context.Context) (*catalogue.Disruption, error) { return nil, catalogue.ErrNotPerformed }
		}, catalogue.ErrNotPerformed.Error()},
		"an operand does not recover": {func(*application) act {
			return func(context.Context) (*catalogue.Disruption, error) {
				return &catalogue.Disruption{Operands: []catalogue.OperandDisruption{{Name: "Deployment a/b", Failure: "0 of 1 pods are available"}}}, nil
			}
		}, "Deployment a/b: 0 of 1 pods are available"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t)
			next := func(context.Context) (*catalogue.Disruption, error) {
				t.Error("the next step was performed")
				return &catalogue.Disruption{}, nil
			}
			r := recovery{
				stable: stableFor, limit: lostAfter, clients: a.clients(t)[:1], steps: []step{{name: "one", act: test.act(a)}, {name: "two", act: next}},
			}
			r.run(t.Context())
			if err := r.verdict(); !errors.Is(err, errUnrecovered) || !strings.Contains(err.Error(), "one: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if all := r.requests(); len(all) != 1 || all[0].recovered {
				t.Errorf("rows: %+v", all)
			}
		})
	}
}

func TestParseRoute(t *testing.T) {
	for text, want := range map[string]types.NamespacedName{
		canaryRoute: {Namespace: "openshift-ingress-canary", Name: "canary"}, "canary": {}, "a/": {}, "/b": {}, "a/b/c": {}, "": {},
	} {
		got, err := parseRoute(text)
		if got != want || (err == nil) != (want != types.NamespacedName{}) || err != nil && !errors.Is(err, errRouteName) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	each func(string)
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.each(string(p))
	return b.text.Write(p)
}

// The command prints a line for each request until it is interrupted, which is no failure.
func TestTrafficCommand(t *testing.T) {
	a := newApplication(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &lockedBuffer{each: func(line string) {
		switch {
		case strings.HasPrefix(line, "ok "):
			a.down.Store(true)
		case strings.HasPrefix(line, "failed ") && strings.Contains(line, "503"):
			interrupt()
		}
	}}
	code := Program{Out: out, Err: &bytes.Buffer{}, Catalogue: someChecks()}.Main(ctx, []string{"traffic", "http://canary.invalid/", a.Listener.Addr().String(), "--interval=10ms"})
	if code != 0 || !strings.HasPrefix(out.text.String(), "ok 0.") {
		t.Errorf("exit code %d:\n%s", code, out.text.String())
	}
}

// Without a folder, a Route or a cluster nothing begins.
func TestRecoverUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no folder": {}, "route": {"-o", t.TempDir(), "--route", "canary"}, "tier": {"-o", t.TempDir(), "--tiers", "unknown"}, "outage": {"-o", t.TempDir(), "--outage-command", "true"},
	} {
		f := &fake{}
		if code, _, problem := f.run(t, nil, append([]string{"recover"}, args...)...); code != exitBadInput || problem == "" || len(f.requested) > 0 {
			t.Errorf("%s: exit code %d, %s, requested %v", name, code, problem, f.requested)
		}
	}
}
