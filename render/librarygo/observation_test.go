// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

func observes(config map[string]any) librarygo.Observer {
	return func(context.Context, *store.Session, map[string]any) (map[string]any, error) { return config, nil }
}

func observed(t *testing.T, s *store.Store) map[string]any {
	t.Helper()
	config, err := librarygo.ObservedConfig(t.Context(), sessionOf(s), operator)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestConfigObservation(t *testing.T) {
	s := newStore(t, configMap("input", map[string]string{"k": "v"}))
	if config := observed(t, s); len(config) != 0 {
		t.Errorf("before the first run %v was observed", config)
	}
	var existing map[string]any
	step := loop.Once(librarygo.ConfigObservation("observation", operator,
		observes(map[string]any{"a": map[string]any{"b": []any{"c"}}}),
		observes(nil),
		func(ctx context.Context, s *store.Session, before map[string]any) (map[string]any, error) {
			existing = before
			found, err := s.Kube().CoreV1().ConfigMaps(namespace).Get(ctx, "input", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return map[string]any{"a": map[string]any{"d": found.Data["k"]}}, nil
		},
	))
	must(t, s, step)
	want := map[string]any{"a": map[string]any{"b": []any{"c"}, "d": "v"}}
	if diff := cmp.Diff(want, observed(t, s)); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	if must(t, s, step) {
		t.Error("a second run wrote something")
	}
	if diff := cmp.Diff(want, existing); diff != "" {
		t.Errorf("what was observed before (-want +got):\n%s", diff)
	}

	// Values that are no longer observed are removed.
	must(t, s, loop.Once(librarygo.ConfigObservation("observation", operator, observes(map[string]any{"e": "f"}))))
	if diff := cmp.Diff(map[string]any{"e": "f"}, observed(t, s)); diff != "" {
		t.Errorf("observed later (-want +got):\n%s", diff)
	}
}

func TestConfigObservationErrors(t *testing.T) {
	errObserver := errors.New("no network")
	fails(t, run(t, newStore(t), loop.Once(librarygo.ConfigObservation("observation", operator, func(context.Context, *store.Session, map[string]any) (map[string]any, error) {
		return nil, errObserver
	}))), `"observation"`, errObserver.Error())
	fails(t, run(t, newStore(t), loop.Once(librarygo.ConfigObservation("observation", operator, observes(map[string]any{"a": "b"}), observes(map[string]any{"a": "c"})))),
		`"observation"`, "non-deterministic")
	s := fixture.Store(t)
	fails(t, run(t, s, loop.Once(librarygo.ConfigObservation("observation", operator, observes(nil)))), `"observation"`, `"cluster" not found`)
}

func TestObserversReadsCount(t *testing.T) {
	s := newStore(t, configMap("input", nil))
	reads := func(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
		_, err := s.Kube().CoreV1().ConfigMaps(namespace).Get(ctx, "input", metav1.GetOptions{})
		return nil, err
	}
	err := run(t, s, loop.Once(librarygo.ConfigObservation("observation", operator, reads)), loop.Once(loop.Loop{
		Name: "later", Writes: store.ConfigMaps(namespace, "input"),
		New: loop.Stateless(func(ctx context.Context, s *store.Session) error {
			return librarygo.Apply(ctx, s, configMap("input", map[string]string{"k": "v"}))
		}),
	}))
	if !errors.Is(err, loop.ErrOrder) {
		t.Errorf("got %v, want %v", err, loop.ErrOrder)
	}
}
