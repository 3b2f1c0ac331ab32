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
		"both have something to do":       {chosen: chosen, want: map[string]string{"sno": "suite a d", "sno-second": "b c"}},
		"the suite is something to do":    {chosen: chosen[1:3], want: map[string]string{"sno": "suite", "sno-second": "b c"}},
		"nothing for the first":           {options: options{noSuite: true}, chosen: chosen[1:3], want: map[string]string{"sno": "b c"}},
		"nothing for the second":          {chosen: chosen[:1], want: map[string]string{"sno": "suite a"}},
		"nothing but the suite":           {want: map[string]string{"sno": "suite"}},
		"one for all, in the whole order": {options: options{one: true}, chosen: chosen, want: map[string]string{"sno": "suite a b c d"}},
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

// What is beside another one has to be on its cluster, and what leaves a cluster without leases has to be the last there.
func TestOrder(t *testing.T) {
	for _, o := range []options{{}, {one: true}} {
		for _, l := range o.lanes(experiments.All()) {
			for i, experiment := range l.chosen {
				if experiment.OwnCluster && (i == 0 || l.chosen[i-1].Name != experiments.APIOutage.Name) {
					t.Errorf("one cluster: %t: %s is not beside the outages", o.one, experiment.Name)
				}
				if experiment.Name == experiments.NodeRestart.Name && i < len(l.chosen)-1 {
					t.Errorf("one cluster: %t: %s is not the last", o.one, experiment.Name)
				}
			}
		}
	}
}

func TestTold(t *testing.T) {
	var out strings.Builder
	told := newTold(&out)
	a, b := told.by("a"), told.by("b")
	for _, said := range []struct {
		by interface {
			Write(text []byte) (int, error)
		}
		text string
	}{{a, "one\ntw"}, {b, "half"}, {a, "o\n"}, {b, "\n\n"}} {
		if n, err := said.by.Write([]byte(said.text)); n != len(said.text) || err != nil {
			t.Error(n, err)
		}
	}
	told.say("that was %d", 2)
	if diff := cmp.Diff("a: one\na: two\nb: half\nb: \n== that was 2 (0s)\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is begun for somebody who has gone.
func TestTryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := kindtarget.Experiment{Name: "a", Run: func(context.Context, *kindtarget.Env) error { t.Error("it ran"); return nil }}
	if err := (options{told: newTold(&strings.Builder{})}).try(ctx, nil, []kindtarget.Experiment{never}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Two that have to be alone are never at work at once, and one that has not waits for nobody.
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
		t.Error("it waited", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran = false
	if err := o.inTurn(ctx, true, run); !errors.Is(err, context.Canceled) || ran {
		t.Error("it did not wait", err)
	}
	close(end)
	if err := errors.Join(<-ended, o.inTurn(t.Context(), true, run)); err != nil || !ran {
		t.Error(err)
	}
}
