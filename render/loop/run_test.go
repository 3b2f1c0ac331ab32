// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

const namespace = "ns"

type act func(context.Context, kubernetes.Interface) error

// newLoop returns a loop that may write these ConfigMaps and runs the acts in order.
func newLoop(name string, writes []string, acts ...act) loop.Loop {
	return loop.Loop{
		Name: name, Writes: store.ConfigMaps(namespace, writes...),
		New: loop.Stateless(func(ctx context.Context, s *store.Session) error {
			for _, a := range acts {
				if err := a(ctx, s.Kube()); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func writes(names ...string) []string { return names }

func set(name, value string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		c := client.CoreV1().ConfigMaps(namespace)
		found, err := c.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"value": value}}, Data: map[string]string{"value": value}}
			_, err = c.Create(ctx, wanted, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		found.Labels, found.Data = map[string]string{"value": value}, map[string]string{"value": value}
		_, err = c.Update(ctx, found, metav1.UpdateOptions{})
		return err
	}
}

func overwrite(name, value string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}, metav1.UpdateOptions{})
		return err
	}
}

func count(name string, limit int) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		c := client.CoreV1().ConfigMaps(namespace)
		found, err := c.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(found.Data["value"]) < limit {
			found.Data["value"] += "+"
		}
		_, err = c.Update(ctx, found, metav1.UpdateOptions{})
		return err
	}
}

func mustGet(name string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

func mayGet(name string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		if err := mustGet(name)(ctx, client); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
}

func list(selector string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		return err
	}
}

func remove(name string) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// ignoreError hides the error of an act, as a controller does that reports it as a condition.
func ignoreError(a act) act {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_ = a(ctx, client)
		return nil
	}
}

var errOfLoop = errors.New("a fault of its own")

func fail(context.Context, kubernetes.Interface) error { return errOfLoop }

func panicking(context.Context, kubernetes.Interface) error { panic("out of range") }

func untilDone(ctx context.Context, _ kubernetes.Interface) error {
	<-ctx.Done()
	return fmt.Errorf("wait: %w", ctx.Err())
}

// otherError returns another error than its context's.
func otherError(ctx context.Context, _ kubernetes.Interface) error {
	<-ctx.Done()
	return errOfLoop
}

func late(context.Context, kubernetes.Interface) error {
	wait(limit + loop.StopTimeout/2)
	return nil
}

func wait(d time.Duration) { <-time.After(d) }

const limit = 10 * time.Second

func run(t *testing.T, steps ...loop.Step) error {
	t.Helper()
	s := newStore(t)
	return loop.Run(t.Context(), s, steps, loop.Options{Timeout: limit})
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	return fixture.Store(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "input", Labels: map[string]string{"value": "given"}}, Data: map[string]string{"value": ""}},
		fixture.ConfigMap(namespace, "other", nil))
}

func outdated(l loop.Loop, names ...string) loop.Loop {
	l.AllowStale = store.ConfigMaps(namespace, names...)
	return l
}

// Every error names the loop (R-REN-4).
func TestRunErrors(t *testing.T) {
	once, cycle := loop.Once, loop.Cycle
	for _, test := range []struct {
		name  string
		steps []loop.Step
		// Wrapped errors; none if the run must succeed.
		is []error
		// Texts that the error must and must not contain.
		contains, not []string
	}{
		{name: "nothing to do"},
		{name: "one after the other", steps: []loop.Step{once(newLoop("a", writes("x"), set("x", "1"))), once(newLoop("b", writes("y"), mustGet("x"), set("y", "1")))}},
		{
			name: "fails", steps: []loop.Step{once(newLoop("a", nil, fail))},
			is: []error{loop.ErrFailed, errOfLoop}, contains: []string{`"a"`}, not: []string{"order"},
		},
		{
			name: "fails when it is prepared", steps: []loop.Step{once(loop.Loop{Name: "a", New: func(*store.Session) (loop.Sync, error) { return nil, errOfLoop }})},
			is: []error{loop.ErrFailed, errOfLoop}, contains: []string{`"a"`, "prepare"},
		},
		{
			name: "panics", steps: []loop.Step{once(newLoop("a", nil, panicking))},
			is: []error{loop.ErrPanicked}, contains: []string{`"a"`, "out of range", "run_test.go"},
		},
		{
			name: "panics when it is prepared", steps: []loop.Step{once(loop.Loop{Name: "a", New: func(*store.Session) (loop.Sync, error) { panic("out of range") }})},
			is: []error{loop.ErrPanicked}, contains: []string{`"a"`, "out of range", "run_test.go"},
		},
		{
			name: "panics in a cycle with further rounds", steps: []loop.Step{cycle(3, newLoop("a", nil, panicking))},
			is: []error{loop.ErrPanicked}, contains: []string{`"a"`},
		},
		{
			name: "panics in the first round only", steps: []loop.Step{cycle(3, newLoop("a", nil, func(ctx context.Context, client kubernetes.Interface) error {
				if mustGet("x")(ctx, client) != nil {
					panic("out of range")
				}
				return nil
			}), newLoop("b", writes("x"), set("x", "1")))},
			is: []error{loop.ErrPanicked}, contains: []string{`"a"`},
		},
		{
			name: "reads when it is prepared", steps: []loop.Step{once(loop.Loop{Name: "a", New: func(s *store.Session) (loop.Sync, error) {
				return idle(mustGet("input")(t.Context(), s.Kube()))
			}})},
			is: []error{loop.ErrEarlyAccess}, contains: []string{`"a"`},
		},
		{
			name: "writes when it is prepared", steps: []loop.Step{once(loop.Loop{Name: "a", Writes: store.ConfigMaps(namespace, "input"), New: func(s *store.Session) (loop.Sync, error) {
				return idle(overwrite("input", "1")(t.Context(), s.Kube()))
			}})},
			is: []error{loop.ErrEarlyAccess}, contains: []string{`"a"`},
		},
		{
			name: "hangs until its context ends", steps: []loop.Step{once(newLoop("a", nil, untilDone))},
			is: []error{loop.ErrTimeout}, contains: []string{`"a"`, "10s"},
		},
		{
			name: "hangs and returns another error", steps: []loop.Step{once(newLoop("a", nil, otherError))},
			is: []error{loop.ErrTimeout}, contains: []string{`"a"`, "10s", errOfLoop.Error()},
		},
		{
			name: "hangs in a cycle with further rounds", steps: []loop.Step{cycle(3, newLoop("a", nil, otherError))},
			is: []error{loop.ErrTimeout}, contains: []string{`"a"`},
		},
		{
			name: "ends without an error, but late", steps: []loop.Step{once(newLoop("a", nil, late))},
			is: []error{loop.ErrTimeout}, contains: []string{`"a"`},
		},
		{
			name: "writes what it did not declare", steps: []loop.Step{once(newLoop("a", writes("y"), set("x", "1")))},
			is: []error{store.ErrUndeclared}, contains: []string{`"a"`, "create configmaps ns/x"},
		},
		{
			name: "writes what it did not declare and hides the error", steps: []loop.Step{once(newLoop("a", nil, ignoreError(set("x", "1")), ignoreError(remove("input"))))},
			is: []error{store.ErrUndeclared}, contains: []string{`"a"`, "create configmaps ns/x", "delete configmaps ns/input"},
		},
		{
			name: "writes what it did not declare in a cycle with further rounds", steps: []loop.Step{cycle(3, newLoop("a", nil, set("x", "1")))},
			is: []error{store.ErrUndeclared}, contains: []string{`"a"`},
		},
		{
			name: "one name twice", steps: []loop.Step{once(newLoop("a", nil)), cycle(2, newLoop("b", nil), newLoop("a", nil))},
			is: []error{loop.ErrDuplicate}, contains: []string{`"a"`}, not: []string{`"b"`},
		},

		// Cycles.
		{name: "settles at once", steps: []loop.Step{cycle(1, newLoop("a", nil, mustGet("input")))}},
		{name: "settles in the last round", steps: []loop.Step{cycle(4, newLoop("a", writes("input"), count("input", 3)))}},
		{
			name: "does not settle", steps: []loop.Step{cycle(3, newLoop("a", writes("input"), count("input", 3)), newLoop("b", nil, mustGet("input")), newLoop("c", writes("other"), set("other", "1")))},
			is: []error{loop.ErrNotSettled}, contains: []string{"in 3 rounds", `"a" still changes configmaps ns/input`}, not: []string{`"b"`, `"c"`},
		},
		{
			name: "two undo each other's changes", steps: []loop.Step{cycle(3, newLoop("a", writes("x"), set("x", "1")), newLoop("b", writes("x"), set("x", "2")))},
			is: []error{loop.ErrNotSettled}, contains: []string{`"a" still changes configmaps ns/x`, `"b" still changes configmaps ns/x`},
		},
		{
			name:  "fails in the first round and settles in the next ones",
			steps: []loop.Step{cycle(3, newLoop("a", nil, mustGet("x")), newLoop("b", writes("x"), set("x", "1")))},
		},
		{
			name: "fails in every round", steps: []loop.Step{cycle(3, newLoop("a", nil, fail), newLoop("b", writes("x"), set("x", "1")))},
			is: []error{loop.ErrFailed, errOfLoop}, contains: []string{`"a"`}, not: []string{"order"},
		},
		{
			// Each loop of the cycle has run, so the order is right.
			name: "fails in every round without what the cycle does not write", steps: []loop.Step{cycle(3, newLoop("a", nil, mustGet("x")), newLoop("b", writes("x")))},
			is: []error{loop.ErrFailed}, contains: []string{`"a"`}, not: []string{"order"},
		},

		// The order.
		{
			name: "a later loop changes what an earlier one has read", steps: []loop.Step{once(newLoop("a", nil, mustGet("input"))), once(newLoop("b", writes("input"), set("input", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input", `run "b" first`},
		},
		{
			name: "a later loop writes what an earlier one did not find", steps: []loop.Step{once(newLoop("a", nil, mayGet("x"))), once(newLoop("b", writes("x"), set("x", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "did not find configmaps ns/x", `run "b" first`},
		},
		{
			name: "a later loop writes what an earlier one needs", steps: []loop.Step{once(newLoop("a", nil, mustGet("x"))), once(newLoop("b", writes("x"), set("x", "1")))},
			is: []error{loop.ErrFailed, loop.ErrOrder}, contains: []string{`"a"`, `"b", which runs later, writes configmaps ns/x`},
		},
		{
			name: "a later loop removes what an earlier one has read", steps: []loop.Step{once(newLoop("a", nil, mustGet("input"))), once(newLoop("b", writes("input"), remove("input")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input", `run "b" first`},
		},
		{
			name: "a later loop recreates what an earlier one has read", steps: []loop.Step{once(newLoop("a", nil, mustGet("input"))), once(newLoop("b", writes("input"), remove("input"), set("input", "")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input", `run "b" first`},
		},
		{name: "what is written and removed again was never there", steps: []loop.Step{once(newLoop("a", nil, mayGet("x"))), once(newLoop("b", writes("x"), set("x", "1"), remove("x")))}},
		{
			name: "a later loop changes what an earlier one has listed", steps: []loop.Step{once(newLoop("a", nil, list(""))), once(newLoop("b", writes("input"), set("input", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input"}, not: []string{"other"},
		},
		{
			name: "a later loop adds to what an earlier one has listed", steps: []loop.Step{once(newLoop("a", nil, list("value=1"))), once(newLoop("b", writes("x"), set("x", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "did not find configmaps ns/x"},
		},
		{
			name: "a later loop moves something out of what an earlier one has listed", steps: []loop.Step{once(newLoop("a", nil, list("value=given"))), once(newLoop("b", writes("input"), set("input", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input"},
		},
		{
			name: "a later loop removes something of what an earlier one has listed", steps: []loop.Step{once(newLoop("a", nil, list("value=given"))), once(newLoop("b", writes("input"), remove("input")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "read configmaps ns/input"},
		},
		{name: "a later loop changes what a list did not select", steps: []loop.Step{once(newLoop("a", nil, list("value=given"))), once(newLoop("b", writes("other", "x"), set("other", "1"), set("x", "1")))}},
		{name: "a later loop writes what is there already", steps: []loop.Step{once(newLoop("a", writes("x"), set("x", "1"))), once(newLoop("b", writes("x"), set("x", "1")))}},
		{
			name: "a later loop undoes what an earlier one has written", steps: []loop.Step{once(newLoop("a", writes("x"), set("x", "1"))), once(newLoop("b", writes("x"), set("x", "2")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "configmaps ns/x", `run "b" first`},
		},
		{
			name: "a later loop undoes what an earlier one has written without reading it", steps: []loop.Step{once(newLoop("a", writes("input"), overwrite("input", "1"))), once(newLoop("b", writes("input"), set("input", "2")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, "configmaps ns/input", `run "b" first`},
		},
		{name: "a loop may read what it has written", steps: []loop.Step{once(newLoop("a", writes("x", "input"), mayGet("x"), list(""), set("x", "1"), set("input", "1")))}},
		{
			name: "a later cycle changes what an earlier loop has read", steps: []loop.Step{once(newLoop("a", nil, mustGet("input"))), cycle(4, newLoop("b", writes("input"), count("input", 2)), newLoop("c", nil, mustGet("input")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, `run "b" first`}, not: []string{`"c"`},
		},
		{
			name: "a later loop changes what a settled cycle has read", steps: []loop.Step{cycle(4, newLoop("a", nil, mustGet("input")), newLoop("b", writes("x"), set("x", "1"))), once(newLoop("c", writes("input"), set("input", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, `run "c" first`}, not: []string{`"b"`},
		},
		{name: "in a cycle each reads again", steps: []loop.Step{cycle(3, newLoop("a", nil, mustGet("input"), mayGet("x"), list("")), newLoop("b", writes("x", "input"), set("x", "1"), set("input", "1")))}},
		{
			name: "every fault of the order at once", steps: []loop.Step{once(newLoop("a", nil, mustGet("input"))), once(newLoop("b", nil, mustGet("other"))), once(newLoop("c", writes("input", "other"), set("input", "1"), set("other", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`, `"b"`, "ns/input", "ns/other"},
		},
		{name: "changed later on purpose", steps: []loop.Step{once(outdated(newLoop("a", nil, mustGet("input"), mayGet("x")), "input", "x")), once(newLoop("b", writes("input", "x"), set("input", "1"), set("x", "1")))}},
		{
			name: "another object is changed later on purpose", steps: []loop.Step{once(outdated(newLoop("a", nil, mustGet("input")), "other")), once(newLoop("b", writes("input"), set("input", "1")))},
			is: []error{loop.ErrOrder}, contains: []string{`"a"`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := run(t, test.steps...)
				if len(test.is) == 0 && err != nil {
					t.Fatalf("got %v", err)
				}
				for _, sentinel := range test.is {
					if !errors.Is(err, sentinel) {
						t.Errorf("got %v, which is not %q", err, sentinel)
					}
				}
				for _, part := range test.contains {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in: %v", part, err)
					}
				}
				for _, part := range test.not {
					if err != nil && strings.Contains(err.Error(), part) {
						t.Errorf("%q is in: %v", part, err)
					}
				}
			})
		})
	}
}

func idle(err error) (loop.Sync, error) { return func(context.Context) error { return nil }, err }

// A loop that ignores the end of its context cannot write afterwards.
func TestHungLoopCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, written := make(chan struct{}), make(chan error)
		s := newStore(t)
		started := time.Now()
		err := loop.Run(t.Context(), s, []loop.Step{
			loop.Once(newLoop("a", writes("x"), func(ctx context.Context, client kubernetes.Interface) error {
				<-release
				err := set("x", "1")(context.WithoutCancel(ctx), client)
				written <- err
				return err
			})),
			loop.Once(newLoop("b", writes("y"), set("y", "1"))),
		}, loop.Options{Timeout: limit})
		if !errors.Is(err, loop.ErrTimeout) || !strings.Contains(err.Error(), `"a"`) || strings.Contains(err.Error(), `"b"`) {
			t.Errorf("got %v, want a timeout of a", err)
		}
		if took := time.Since(started); took != limit+loop.StopTimeout {
			t.Errorf("the run took %s", took)
		}
		close(release)
		if err := <-written; !errors.Is(err, store.ErrClosed) {
			t.Errorf("the loop wrote after its timeout, and got %v", err)
		}
		if objects, err := s.Objects(); err != nil || len(objects) != 2 {
			t.Errorf("the store holds %d objects, %v; want the two that it began with", len(objects), err)
		}
	})
}

// An interrupt is not reported as an error of the running loop.
func TestCancelled(t *testing.T) {
	for _, test := range []struct {
		name string
		act  act
	}{
		{"while a loop waits for its context", untilDone},
		{"while a loop returns something else", otherError},
		{"while a loop hangs", late},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(limit/2, cancel).Stop()
				err := loop.Run(ctx, newStore(t), []loop.Step{
					loop.Once(newLoop("a", nil, test.act)), loop.Once(newLoop("b", nil, fail)),
				}, loop.Options{Timeout: limit})
				if !errors.Is(err, context.Canceled) || errors.Is(err, loop.ErrTimeout) || errors.Is(err, loop.ErrFailed) {
					t.Errorf("got %v, want that the context was cancelled", err)
				}
				wait(2 * limit) // until the hung loop has returned
			})
		})
	}
}

// A report follows each reconciliation, also a failed one.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []loop.Report
		err := loop.Run(t.Context(), newStore(t), []loop.Step{
			loop.Once(newLoop("a", writes("x"), set("x", "1"), func(context.Context, kubernetes.Interface) error {
				wait(time.Second)
				return nil
			})),
			loop.Cycle(4, newLoop("b", nil, mustGet("input")), newLoop("c", writes("input"), count("input", 1))),
			loop.Once(newLoop("d", writes("y"), set("y", "1"), fail)),
			loop.Once(newLoop("e", nil)),
		}, loop.Options{Timeout: limit, Report: func(r loop.Report) { reports = append(reports, r) }})
		if !errors.Is(err, errOfLoop) {
			t.Errorf("got %v", err)
		}
		want := []loop.Report{
			{Loop: "a", Round: 1, Wrote: []string{"configmaps ns/x"}, Duration: time.Second},
			{Loop: "b", Round: 1},
			{Loop: "c", Round: 1, Wrote: []string{"configmaps ns/input"}},
			{Loop: "b", Round: 2},
			{Loop: "c", Round: 2},
			{Loop: "d", Round: 1, Wrote: []string{"configmaps ns/y"}},
		}
		if diff := cmp.Diff(want, reports); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// Each loop is prepared once, before the first one runs.
func TestPreparedOnce(t *testing.T) {
	var calls []string
	prepared := func(name string) loop.Loop {
		return loop.Loop{Name: name, New: func(s *store.Session) (loop.Sync, error) {
			calls = append(calls, "new "+s.Name())
			return func(context.Context) error {
				calls = append(calls, "sync "+s.Name())
				return nil
			}, nil
		}}
	}
	err := loop.Run(t.Context(), newStore(t), []loop.Step{loop.Once(prepared("a")), loop.Cycle(3, prepared("b"), prepared("c"))}, loop.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"new a", "new b", "new c", "sync a", "sync b", "sync c"}; !slices.Equal(want, calls) {
		t.Errorf("got %v, want %v", calls, want)
	}
}
