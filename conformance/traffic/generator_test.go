// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestGenerator(t *testing.T) {
	var broken atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	g := Start(t.Context(), Endpoint{URL: server.URL, Body: "hello"})
	const stable, soon = 4 * Interval, 20 * time.Second
	if err := g.WaitAnswered(t.Context(), stable, soon); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if err := g.WaitAnswered(t.Context(), stable, 10*Interval); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "503") {
		t.Errorf("a server that refuses: %v", err)
	}
	broken.Store(false)
	if err := g.WaitAnswered(t.Context(), stable, soon); err != nil {
		t.Error(err)
	}
	samples := g.Stop()
	// On a busy machine a later request may overtake one and be answered before a change.
	outages, failed := Outages(samples), 0
	for _, outage := range outages {
		failed += outage.Failed
		if outage.To.IsZero() {
			t.Errorf("an outage does not end: %+v", outage)
		}
	}
	if failed < 2 {
		t.Errorf("outages: %+v", outages)
	}
	if late := g.Since(time.Now()); len(late) != 0 {
		t.Errorf("requests after Stop: %v", late)
	}
}

func TestGeneratorExpectsItsAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("unknown")) }))
	g := Start(t.Context(), Endpoint{URL: server.URL, Body: "hello"})
	defer g.Stop()
	if err := g.WaitAnswered(t.Context(), Interval, 10*Interval); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "another answer") {
		t.Errorf("another server: %v", err)
	}
	server.Close()
	if err := g.WaitAnswered(t.Context(), Interval, 10*Interval); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("no server: %v", err)
	}
}

// A server that takes longer than a second.
func TestWithin(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(answerTimeout + Interval)
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	slow, other := Start(t.Context(), Endpoint{URL: server.URL, Within: time.Minute}), Start(t.Context(), Endpoint{URL: server.URL})
	defer slow.Stop()
	defer other.Stop()
	if err := slow.WaitAnswered(t.Context(), Interval, 20*time.Second); err != nil {
		t.Error(err)
	}
	if err := other.WaitAnswered(t.Context(), Interval, 2*answerTimeout); !errors.Is(err, ErrLost) {
		t.Errorf("within a second: %v", err)
	}
}

func TestWaitAnsweredEndsWithItsContext(t *testing.T) {
	g := Start(t.Context(), Endpoint{URL: "http://192.0.2.1/", Body: "hello"})
	defer g.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.WaitAnswered(ctx, Interval, time.Minute); !errors.Is(err, ErrLost) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestStreak(t *testing.T) {
	for _, test := range []struct {
		answers string
		good    time.Duration
		problem string
	}{
		{answers: ""},
		{answers: "o"},
		{answers: "ooo", good: 200 * time.Millisecond},
		{answers: "ooox", problem: "refused"},
		{answers: "xoo", good: 100 * time.Millisecond, problem: "refused"},
	} {
		if good, problem := streak(requests(test.answers)); good != test.good || problem != test.problem {
			t.Errorf("%s: %s, %q; want %s, %q", test.answers, good, problem, test.good, test.problem)
		}
	}
}

// An endpoint at another address keeps the host of its URL, redirects are answers, and errors begin where configured.
func TestEndpoint(t *testing.T) {
	var host atomic.Value
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		w.Header().Set("Location", "http://192.0.2.1/")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	for _, test := range []struct {
		status, errors int
		want           bool
	}{
		{http.StatusOK, 0, true},
		{http.StatusFound, 0, true},
		{http.StatusForbidden, 0, false},
		{http.StatusForbidden, http.StatusInternalServerError, true},
		{http.StatusServiceUnavailable, http.StatusInternalServerError, false},
	} {
		status.Store(int32(test.status))
		g := Start(t.Context(), Endpoint{
			URL: "http://canary.apps.invalid/", Address: server.Listener.Addr().String(), Errors: test.errors, Interval: Interval / 5,
		})
		limit := 20 * Interval
		if test.want {
			limit = 20 * time.Second
		}
		err := g.WaitAnswered(t.Context(), 2*Interval, limit)
		if (err == nil) != test.want || host.Load() != "canary.apps.invalid" {
			t.Errorf("status %d, errors from %d: %v; host %v", test.status, test.errors, err, host.Load())
		}
		g.Stop()
	}
}
