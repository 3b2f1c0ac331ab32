// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/experiments"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/kind"
)

func TestLanes(t *testing.T) {
	chosen := []kindtarget.Experiment{{Name: "a"}, {Name: "b", SecondCluster: true}, {Name: "c", OwnCluster: true, SecondCluster: true}, {Name: "d"}}
	for name, test := range map[string]struct {
		options options
		chosen  []kindtarget.Experiment
		want    map[string]string
	}{
		"work for both":                {chosen: chosen, want: map[string]string{"sno": "suite a d", "sno-second": "b c"}},
		"only the suite for the first": {chosen: chosen[1:3], want: map[string]string{"sno": "suite", "sno-second": "b c"}},
		"no work for the first":        {options: options{noSuite: true}, chosen: chosen[1:3], want: map[string]string{"sno": "b c"}},
		"no work for the second":       {chosen: chosen[:1], want: map[string]string{"sno": "suite a"}},
		"only the suite":               {want: map[string]string{"sno": "suite"}},
		"one cluster, all in order":    {options: options{one: true}, chosen: chosen, want: map[string]string{"sno": "suite a b c d"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.kind = kind.Config{Name: "sno"}
			got := map[string]string{}
			for _, l := range test.options.lanes(test.chosen) {
				var does []string
				if l.suite {
					does = append(does, "suite")
				}
				for _, experiment := range l.chosen {
					does = append(does, experiment.Name)
				}
				got[l.config.Name] = strings.Join(does, " ")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An experiment with its own cluster has to follow the API outages, and the one that ends without Leases has to be the
// last.
func TestOrder(t *testing.T) {
	for _, o := range []options{{}, {one: true}} {
		for _, l := range o.lanes(experiments.All()) {
			for i, experiment := range l.chosen {
				if experiment.OwnCluster && (i == 0 || l.chosen[i-1].Name != experiments.APIOutage.Name) {
					t.Errorf("one cluster: %t: %s is not in parallel with the outages", o.one, experiment.Name)
				}
				if experiment.Name == experiments.NodeRestart.Name && i < len(l.chosen)-1 {
					t.Errorf("one cluster: %t: %s is not the last", o.one, experiment.Name)
				}
			}
		}
	}
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	progress := newProgress(&out)
	a, b := progress.by("a"), progress.by("b")
	for _, write := range []struct {
		by interface {
			Write(text []byte) (int, error)
		}
		text string
	}{{a, "one\ntw"}, {b, "half"}, {a, "o\n"}, {b, "\n\n"}} {
		if n, err := write.by.Write([]byte(write.text)); n != len(write.text) || err != nil {
			t.Error(n, err)
		}
	}
	progress.logf("that was %d", 2)
	if diff := cmp.Diff("a: one\na: two\nb: half\nb: \n== that was 2 (0s)\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No experiment begins after an interruption.
func TestTryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := kindtarget.Experiment{Name: "a", Run: func(context.Context, *kindtarget.Env) error { t.Error("it ran"); return nil }}
	if err := (options{progress: newProgress(&strings.Builder{})}).try(ctx, nil, []kindtarget.Experiment{never}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Exclusive experiments run one at a time. Others do not wait.
func TestInTurn(t *testing.T) {
	o := options{turn: make(chan struct{}, 1)}
	begun, end := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- o.inTurn(t.Context(), true, func() error { close(begun); <-end; return nil })
	}()
	<-begun
	ran := false
	run := func() error { ran = true; return nil }
	if err := o.inTurn(t.Context(), false, run); err != nil || !ran {
		t.Error("a parallel experiment has waited", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran = false
	if err := o.inTurn(ctx, true, run); !errors.Is(err, context.Canceled) || ran {
		t.Error("an exclusive experiment has not waited", err)
	}
	close(end)
	if err := errors.Join(<-ended, o.inTurn(t.Context(), true, run)); err != nil || !ran {
		t.Error(err)
	}
}
