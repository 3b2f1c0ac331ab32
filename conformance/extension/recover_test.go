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

// Each step has its own requests, and one that fails is the last one.
func TestRecovery(t *testing.T) {
	done := &catalogue.Disruption{}
	type act func(*application) (*catalogue.Disruption, error)
	nothing := func(*application) (*catalogue.Disruption, error) { return done, nil }
	lose := func(a *application) (*catalogue.Disruption, error) { a.down.Store(true); return done, nil }
	interrupt := func(a *application) (*catalogue.Disruption, error) {
		a.down.Store(true)
		defer a.down.Store(false)
		<-time.After(outage)
		return done, nil
	}
	for name, test := range map[string]struct {
		acts  []act
		steps int
		limit time.Duration
		want  string
	}{
		"an outage in the second step": {[]act{nothing, interrupt, nothing}, 3, time.Minute, ""},
		"traffic is lost":              {[]act{nothing, lose, nothing}, 2, lostAfter, "step 1: traffic is lost"},
		"the act does not happen": {[]act{func(*application) (*catalogue.Disruption, error) { return nil, catalogue.ErrNotPerformed }, nothing},
			1, time.Minute, "step 0: " + catalogue.ErrNotPerformed.Error()},
		"an operand does not recover": {[]act{func(*application) (*catalogue.Disruption, error) {
			return &catalogue.Disruption{Operands: []catalogue.OperandDisruption{{Name: "Deployment a/b", Failure: "0 of 1 pods are available"}}}, nil
		}, nothing}, 1, time.Minute, "step 0: Deployment a/b: 0 of 1 pods are available"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApplication(t)
			r := &recovery{users: traffic.Start(t.Context(), traffic.Endpoint{URL: a.URL}), stable: stableFor, limit: test.limit}
			defer r.users.Stop()
			if err := r.users.WaitAnswered(t.Context(), stableFor, time.Minute); err != nil {
				t.Fatal(err)
			}
			var steps []step
			for i, do := range test.acts {
				steps = append(steps, step{fmt.Sprint("step ", i), func(context.Context) (*catalogue.Disruption, error) { return do(a) }})
			}
			err := r.run(t.Context(), steps)
			if (err != nil) != (test.want != "") || err != nil && (!errors.Is(err, errUnrecovered) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if len(r.rows) != test.steps {
				t.Fatalf("%d rows: %+v", len(r.rows), r.rows)
			}
			for i, row := range r.rows {
				var sent, failed int
				var longest float64
				if _, err := fmt.Sscanf(row.Measured, "%d sent, %d failed, longest outage %f s", &sent, &failed, &longest); err != nil {
					t.Fatalf("%q: %v", row.Measured, err)
				}
				// A request that was sent before the outage can be the first that fails.
				disturbed := i == 1
				if (failed > 0) != disturbed || (longest > outage.Seconds()-0.2) != disturbed || row.Held == (err != nil && i == test.steps-1) {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}
