package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
)

var errCrash = errors.New("the controller crashed")

// dying is a client whose process dies at the n-th write request: before it is sent, or after it was carried out but before the
// answer arrives. before runs before every request that is sent.
type dying struct {
	client.Client
	n         *int
	afterward bool
	before    func()
}

func (d dying) write(send func() error) error {
	*d.n--
	switch {
	case *d.n < 0, *d.n == 0 && !d.afterward:
		return errCrash
	}
	d.before()
	err := send()
	if *d.n == 0 {
		return errCrash
	}
	return err
}

func (d dying) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return d.write(func() error { return d.Client.Apply(ctx, config, opts...) })
}

func (d dying) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return d.write(func() error { return d.Client.Patch(ctx, object, patch, opts...) })
}

// guard watches that downloads is there and wants a replica at every moment, until the returned function is called.
func (c *cluster) guard() (stop func()) {
	c.Helper()
	list := &appsv1.DeploymentList{}
	w, err := c.admin.Watch(c.Context(), list, client.InNamespace(console.Namespace))
	if err != nil {
		c.Fatal(err)
	}
	const last = "seen-it-all"
	var wait sync.WaitGroup
	seen := 0
	wait.Go(func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			switch {
			case !ok:
				c.Errorf("the watch says %+v", event)
			case d.Name == console.ConsoleName && d.Annotations[last] != "":
				return
			case d.Name != console.DownloadsName:
			case event.Type == watch.Deleted || d.DeletionTimestamp != nil:
				c.Error("downloads was deleted")
			case d.Spec.Replicas == nil || *d.Spec.Replicas < 1:
				c.Errorf("downloads wants no replica: %+v", d.Spec)
			default:
				seen++
			}
		}
	})
	return func() {
		c.patch(object("apps/v1", "Deployment", console.Namespace, console.ConsoleName), "test", `{"metadata":{"annotations":{"`+last+`":"yes"}}}`)
		wait.Wait()
		if seen == 0 {
			c.Error("the watch saw nothing, so it shows nothing")
		}
	}
}

// Cut off at any request, with the cluster-version-operator at work at any moment, downloads runs all the time, and the next
// process finishes: on the way in and on the way out.
func TestCrashAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it crashes everywhere; make proof runs it")
	}
	for _, way := range []struct {
		name     string
		from, to configv1.TopologyMode
		least    int
	}{{"taking over", ha, sr, 4}, {"giving back", sr, ha, 4}} {
		for _, afterward := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, request carried out %v", way.name, afterward), func(t *testing.T) {
				crashes := 0
				for n := 1; crashAt(t, way.from, way.to, n, afterward); n++ {
					crashes++
					if n > 20 {
						t.Fatal("it never finishes")
					}
				}
				if crashes < way.least {
					t.Errorf("only %d requests were cut off, want at least %d", crashes, way.least)
				}
			})
		}
	}
}

// crashAt reports whether the process came to its n-th request.
func crashAt(t *testing.T, from, to configv1.TopologyMode, n int, afterward bool) (crashed bool) {
	t.Helper()
	c := installed(t, from, from, hundred()[:3]...)
	defer c.clear()
	manifest := c.deployment(console.DownloadsName)
	c.walker().settle()
	defer c.guard()()
	c.flip(to, to)

	left := n
	operator := &versionOperator{cluster: c}
	operator.act()
	w := c.walker(func(inner client.Client) client.Client {
		return dying{inner, &left, afterward, operator.act}
	})
	for range 20 {
		w.step()
		if left <= 0 {
			break
		}
		operator.act()
	}

	// A new process, which remembers nothing.
	next := c.walker()
	result := next.settle()
	switch d := c.deployment(console.DownloadsName); to {
	case sr:
		c.requireShaped(console.ConsoleName, console.DownloadsName)
		if err := c.overrides(append(hundred()[:3], console.Override())...); err != nil {
			t.Errorf("request %d: %v", n, err)
		}
	default:
		if diff := cmp.Diff(manifest.Spec, d.Spec); diff != "" {
			t.Errorf("request %d, %v: downloads is not as the release has it (-want +got):\n%s", n, result, diff)
		}
		if diff := cmp.Diff(owned(t, manifest), owned(t, d)); diff != "" {
			t.Errorf("request %d: its owners are not either (-want +got):\n%s", n, diff)
		}
		if err := c.overrides(hundred()[:3]...); err != nil {
			t.Errorf("request %d: %v", n, err)
		}
		c.requireNothingOfOurs(d, c.deployment(console.ConsoleName), c.clusterVersion())
	}
	if t.Failed() {
		t.Fatalf("stopped at request %d", n)
	}
	return left <= 0
}
