package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// unserve takes the kind of Machines of the group away, and all of them with it.
func (c *cluster) unserve(group string) {
	c.Helper()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "")
	crd.SetName("machines." + group)
	c.must(client.IgnoreNotFound(c.admin.Delete(c.Context(), crd)))
	patchtest.Eventually(c, "Machines of "+group+" are not served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/v1beta1")
		list.SetKind("MachineList")
		if err := c.admin.List(c.Context(), list); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return fmt.Errorf("listing them: %w", errors.Join(err, errNot))
		}
		return nil
	})
}

// machine makes a Machine, and returns what deletes it.
func (c *cluster) machine(group, name string) (remove func()) {
	c.Helper()
	machine := object(group+"/v1beta1", "Machine", "default")
	machine.SetName(name)
	c.must(c.admin.Create(c.Context(), machine))
	return func() { c.must(c.admin.Delete(c.Context(), machine)) }
}

// watching is a machineWatch of the API server that asks often, and how often it has rung.
func (c *cluster) watching(change func(*rest.Config)) *machineWatch {
	c.Helper()
	config := c.server.Config(c, ourUser, "system:masters")
	if change != nil {
		change(config)
	}
	over, err := rest.HTTPClientFor(config)
	c.must(err)
	w, err := newMachineWatch(config, over, make(chan struct{}, 1))
	c.must(err)
	w.poll = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(c.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Start(ctx); err != nil {
			c.Error(err)
		}
	})
	c.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// becomes waits for a wake and the answer that it brings.
func (w *machineWatch) becomes(t *testing.T, want approver.Presence) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case <-w.wake:
			if w.presence() == want {
				return
			}
		case <-deadline:
			t.Fatalf("it was not woken to see %d, but sees %d", want, w.presence())
		}
	}
}

// A watch sees the first Machine come and the last one go, of every kind and whenever the kind comes, and nothing in between wakes
// anybody.
func TestMachineWatch(t *testing.T) {
	c := install(t)
	groups := []string{"machine.openshift.io", "cluster.x-k8s.io"}
	for _, group := range groups {
		c.unserve(group)
	}
	w := c.watching(nil)
	w.becomes(t, approver.Absent)
	c.serve(groups[0])
	patchtest.Eventually(t, "the watch has begun", func() error {
		if w.watches(machineKinds[0]) == "" {
			return errNot
		}
		return nil
	})
	select { // that a kind is served is no Machine, although it may have been in doubt for a moment
	case <-w.wake:
	default:
	}
	first, second := c.machine(groups[0], "worker-1"), func() {}
	w.becomes(t, approver.Present)
	if !testing.Short() { // to define a kind takes long
		c.serve(groups[1])
		second = c.machine(groups[1], "worker-2")
		patchtest.Eventually(t, "the other kind is watched", func() error {
			if w.watches(machineKinds[1]) == "" {
				return errNot
			}
			return nil
		})
	}
	third := c.machine(groups[0], "worker-3")
	first()
	third()
	second()
	w.becomes(t, approver.Absent)
	c.machine(groups[0], "worker-4")
	w.becomes(t, approver.Present)
	c.unserve(groups[0])
	w.becomes(t, approver.Absent)
}

// While the watch does not know, it is asked at the API server, and in between for every so often; once it knows, neither.
func TestLooksByTheWatch(t *testing.T) {
	c := install(t)
	group := machineKinds[0].Group
	c.serve(group)
	var deny atomic.Bool
	asked := atomic.Int32{}
	deny.Store(true)
	w := c.watching(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if deny.Load() {
					return nil, errNot
				}
				if r.URL.Query().Get("limit") == "1" {
					asked.Add(1)
				}
				return next.RoundTrip(r)
			})
		})
	})
	l := c.looker(approver.NodeClientOff, func(p *patcher) { p.cache, p.watched = c.admin, w })
	l.want(l.settle(), patch.InForce, "AsExpected")
	l.fuse.Before(func(*http.Request) { asked.Add(1) })
	if result := l.look(); result.After == 0 || result.After > l.patcher.every || asked.Load() == 0 {
		t.Errorf("without a watch it looks again after %s, and has asked %d times", result.After, asked.Load())
	}
	deny.Store(false)
	w.becomes(t, approver.Absent)
	asked.Store(0)
	if result := l.look(); result.After != 0 || asked.Load() > 0 {
		t.Errorf("with a watch it looks again after %s, and has asked %d times", result.After, asked.Load())
	}
	remove := c.machine(group, "worker-1")
	w.becomes(t, approver.Present)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.must(c.untouched())
	l.atRest()
	remove()
	w.becomes(t, approver.Absent)
	l.want(l.settle(), patch.InForce, "AsExpected")
	l.atRest()
}

// A kind that the watch knows is not taken for one that is not served, whatever was the case before.
func TestMachinesServedSinceAMoment(t *testing.T) {
	c := install(t)
	group := machineKinds[0].Group
	c.unserve(group)
	w := c.watching(nil)
	w.becomes(t, approver.Absent)
	l := c.looker(approver.NodeClientOff, func(p *patcher) { p.cache, p.watched = c.admin, w })
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.serve(group)
	remove := c.machine(group, "worker-1")
	defer remove()
	w.becomes(t, approver.Present)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.must(c.untouched())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// There are none only where that is known of every kind, and some as soon as it is known of one.
func TestPresence(t *testing.T) {
	unknown, none, some := seenMachines{version: "v1", machines: 1}, seenMachines{known: true}, seenMachines{known: true, version: "v1", machines: 2}
	for _, tt := range []struct {
		first, second seenMachines
		want          approver.Presence
	}{
		{unknown, unknown, approver.Unknown},
		{unknown, none, approver.Unknown},
		{none, unknown, approver.Unknown},
		{none, none, approver.Absent},
		{unknown, some, approver.Present},
		{some, unknown, approver.Present},
		{none, some, approver.Present},
		{some, some, approver.Present},
	} {
		w := &machineWatch{kinds: map[schema.GroupKind]seenMachines{machineKinds[0]: tt.first, machineKinds[1]: tt.second}}
		if got := w.presence(); got != tt.want {
			t.Errorf("%+v, %+v: %d, want %d", tt.first, tt.second, got, tt.want)
		}
	}
	if (&machineWatch{}).presence() != approver.Unknown || (*machineWatch)(nil).presence() != approver.Unknown {
		t.Error("a watch that has not begun knows something")
	}
}

// Of a Machine nothing is held but what tells it from others.
func TestNameOnly(t *testing.T) {
	want := metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "c", ResourceVersion: "1"}
	m := &metav1.PartialObjectMetadata{ObjectMeta: *want.DeepCopy()}
	m.Labels, m.Annotations, m.Finalizers = map[string]string{"x": "y"}, map[string]string{"x": "y"}, []string{"z"}
	m.OwnerReferences, m.ManagedFields = []metav1.OwnerReference{{Name: "o"}}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	if _, err := nameOnly(m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
