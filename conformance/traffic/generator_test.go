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

// What counts as an answer. An endpoint at another address keeps the host of its URL, and redirects are not followed.
func TestEndpoint(t *testing.T) {
	const late = answerTimeout + Interval
	for name, test := range map[string]struct {
		endpoint Endpoint
		status   int
		delay    time.Duration
		lost     string
	}{
		"the expected answer":   {Endpoint{Body: "hello"}, http.StatusOK, 0, ""},
		"another answer":        {Endpoint{Body: "goodbye"}, http.StatusOK, 0, "another answer"},
		"after a second":        {Endpoint{}, http.StatusOK, late, "Timeout"},
		"within a minute":       {Endpoint{Within: time.Minute}, http.StatusOK, late, ""},
		"a redirect":            {Endpoint{}, http.StatusFound, 0, ""},
		"a refusal":             {Endpoint{}, http.StatusForbidden, 0, "403"},
		"a refusal that counts": {Endpoint{Errors: http.StatusInternalServerError}, http.StatusForbidden, 0, ""},
		"an error":              {Endpoint{Errors: http.StatusInternalServerError}, http.StatusServiceUnavailable, 0, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host != "canary.apps.invalid" {
					t.Errorf("host %s", r.Host)
				}
				<-time.After(test.delay)
				w.Header().Set("Location", "http://192.0.2.1/")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte("hello"))
			}))
			defer server.Close()
			test.endpoint.URL, test.endpoint.Address, test.endpoint.Interval = "http://canary.apps.invalid/", server.Listener.Addr().String(), Interval/5
			g := Start(t.Context(), test.endpoint)
			defer g.Stop()
			limit := 20 * time.Second
			if test.lost != "" {
				limit = 2 * answerTimeout
			}
			err := g.WaitAnswered(t.Context(), 2*Interval, limit)
			if test.lost == "" && err != nil || test.lost != "" && (!errors.Is(err, ErrLost) || !strings.Contains(err.Error(), test.lost)) {
				t.Errorf("%v, want %q", err, test.lost)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	g := Start(t.Context(), Endpoint{URL: server.URL})
	defer g.Stop()
	if err := g.WaitAnswered(t.Context(), Interval, 10*Interval); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("no server: %v", err)
	}
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
