package run

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapper answers with one error, or knows every kind.
type mapper struct {
	meta.RESTMapper
	err error
}

func (m mapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{}, m.err
}

func TestAppeared(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"served":     {nil, true},
		"not served": {&meta.NoKindMatchError{GroupKind: optional.GroupKind()}, false},
		"no answer":  {errors.New("connection refused"), false},
	} {
		if got := appeared(mapper{err: test.err}, []schema.GroupVersionKind{optional.GroupVersionKind}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The leader election follows a topology that is stable, not one that comes and goes.
func TestStopwatch(t *testing.T) {
	started := time.Now()
	var changed stopwatch
	for i, step := range []struct {
		after time.Duration
		other bool
		want  time.Duration
	}{
		{0, false, 0}, {1, true, 0}, {2, true, 1}, {3, true, 2}, {4, false, 0}, {5, true, 0}, {7, true, 2},
	} {
		if got := changed.since(step.other, started.Add(step.after)); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
