package stable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
)

func options() Options {
	return Options{Quiet: 5 * time.Minute, Timeout: time.Hour, Every: 10 * time.Second, Remind: time.Minute, Progress: io.Discard}
}

// cluster is at rest from the given time on, and until then an operator progresses.
func cluster(t *testing.T, rests time.Duration) func(context.Context) State {
	t.Helper()
	start := time.Now()
	return func(context.Context) State {
		s := atRest()
		if time.Since(start) < rests {
			s.ClusterOperators[0].Status.Conditions[1].Status = configv1.ConditionTrue
		}
		return s
	}
}

func TestWait(t *testing.T) {
	tests := map[string]struct {
		rests  time.Duration
		change func(*Options)
		// waited is how long it takes, exactly: the clock of the test is artificial.
		waited time.Duration
		err    string
	}{
		"at rest from the beginning": {waited: 5 * time.Minute},
		"at rest later":              {rests: 12 * time.Minute, waited: 17 * time.Minute},
		"no quiet period":            {change: func(o *Options) { o.Quiet = 0 }},
		"no quiet period, at rest later": {
			rests: 15 * time.Second, change: func(o *Options) { o.Quiet = 0 }, waited: 20 * time.Second,
		},
		"quiet for just as long as there is time": {change: func(o *Options) { o.Timeout = 5 * time.Minute }, waited: 5 * time.Minute},
		"quiet period shorter than a look's": {
			change: func(o *Options) { o.Quiet = time.Second }, waited: time.Second,
		},
		"never at rest": {
			rests: 2 * time.Hour, waited: time.Hour,
			err: "the cluster is not stable after 1h0m0s:\n  ClusterOperator console: Progressing=True (AsExpected)",
		},
		"never at rest, with a limit between two looks": {
			rests: 2 * time.Hour, change: func(o *Options) { o.Quiet, o.Timeout = 0, 65*time.Second }, waited: 65 * time.Second,
			err: "the cluster is not stable after 1m5s:\n  ClusterOperator console: Progressing=True (AsExpected)",
		},
		"at rest too late": {
			rests: 57 * time.Minute, waited: time.Hour,
			err: "the cluster is not stable after 1h0m0s:\n  nothing moves any more, but only for 3m0s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				if test.change != nil {
					test.change(&o)
				}
				start := time.Now()
				out, err := Wait(t.Context(), cluster(t, test.rests), o)
				if waited := time.Since(start); waited != test.waited || out.Waited.Duration != waited {
					t.Errorf("took %s and says %s, want %s", waited, out.Waited.Duration, test.waited)
				}
				if out.Stable != (test.err == "") {
					t.Errorf("stable: %t", out.Stable)
				}
				if test.err == "" && err != nil || test.err != "" && (!errors.Is(err, ErrNotStable) || err.Error() != test.err) {
					t.Errorf("got the error %v, want %q", err, test.err)
				}
			})
		})
	}
}

func TestWaitIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Wait(ctx, cluster(t, time.Hour), options()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotStable) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestUnknownIsNotStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Wait(t.Context(), func(context.Context) State {
			s := atRest()
			s.Unknown = []Unknown{{Kind: kindNode, Error: "nodes is forbidden"}}
			return s
		}, options())
		if !errors.Is(err, ErrNotStable) || !strings.Contains(err.Error(), "\n  Node: not known: nodes is forbidden") {
			t.Errorf("got %v, want what is not known", err)
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		o := options()
		o.Quiet, o.Timeout, o.Progress = 2*time.Minute, 10*time.Minute, &said
		start := time.Now()
		if _, err := Wait(t.Context(), func(context.Context) State {
			s := atRest()
			s.Pools, s.NotServed = nil, []string{kindPool}
			switch passed := time.Since(start); {
			case passed < 90*time.Second:
				s.ClusterOperators[0].Status.Conditions[1].Status = configv1.ConditionTrue
				s.ClusterOperators[0].Status.Conditions[1].LastTransitionTime.Time = start.Add(-time.Minute)
			case passed >= 2*time.Minute:
				s.Nodes[0].Status.NodeInfo.BootID = "b"
			}
			return s
		}, o); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"00:00:00 ClusterOperator console: Progressing=True (AsExpected), for 60s",
			"00:00:00 MachineConfigPool: left out, the cluster does not serve it",
			"00:00:00 Waiting: 1 still moving; 10m left",
			"00:01:00 Waiting: 1 still moving; 9m left",
			"00:01:30 ClusterOperator console: has changed",
			"00:01:30 Quiet for 0s of 2m; 8m30s left",
			"00:02:00 Node sno: has changed",
			"00:02:00 Quiet for 0s of 2m; 8m left",
			"00:03:00 Quiet for 60s of 2m; 7m left",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(said.String()), "\n")); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestProgressOfManyIsShort(t *testing.T) {
	var said bytes.Buffer
	p := progress{out: &said, options: options()}
	s := atRest()
	for range 99 {
		s.Nodes = append(s.Nodes, *s.Nodes[0].DeepCopy())
	}
	for i := range s.Nodes {
		s.Nodes[i].Name += strings.Repeat("x", i)
		s.Nodes[i].Spec.Unschedulable = true
	}
	report := Look(s)
	p.tell(installed, 0, &report, Verdict{})
	if lines := strings.Count(said.String(), "\n"); lines != most+2 || !strings.Contains(said.String(), "... and 80 more") {
		t.Errorf("%d lines:\n%s", lines, &said)
	}
}

func TestOptionsThatNobodyCanWaitFor(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"negative quiet period": func(o *Options) { o.Quiet = -1 },
		"no limit":              func(o *Options) { o.Timeout = 0 },
		"more quiet than limit": func(o *Options) { o.Quiet = 2 * time.Hour },
		"no time between looks": func(o *Options) { o.Every = 0 },
		"no time between lines": func(o *Options) { o.Remind = 0 },
	} {
		o := options()
		change(&o)
		if _, err := Wait(t.Context(), nil, o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
}
