package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

var errCrashed = errors.New("the process is gone")

// crashing is a client whose process ends at one of its writes: before the request is sent, or before the answer comes.
type crashing struct {
	left              int
	unheard, happened bool
}

func (k *crashing) write(send func() error) error {
	switch {
	case k.happened:
		return errCrashed
	case k.left > 0:
		k.left--
		return send()
	}
	k.happened = true
	if k.unheard {
		if err := send(); err != nil {
			return err
		}
	}
	return errCrashed
}

func (k *crashing) client(by client.WithWatch) client.Client {
	return interceptor.NewClient(by, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, intent runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return k.write(func() error { return c.Apply(ctx, intent, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return k.write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("nothing is created")
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errors.New("nothing is updated")
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("nothing is deleted")
		},
	})
}

// Whichever write is the last one of a process, the next process finishes the work and then writes nothing.
func TestCrashAfterAnyWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("it crashes everywhere; make proof runs it")
	}
	optOut := func(c *cluster) {
		const away = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"auth"}}}`
		c.patch(authenticationOf(""), "oc", away)
		for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
			c.patch(object("apps/v1", "Deployment", k.Namespace, k.Name), "oc", away)
		}
	}
	specs := func(c *cluster) [2]appsv1.DeploymentSpec {
		return [2]appsv1.DeploymentSpec{c.deployment(serverKey).Spec, c.deployment(apiServerKey).Spec}
	}
	for name, test := range map[string]struct {
		// stock has an operator own the shape. prepare comes before the process that is to crash, and change is what it has to follow.
		stock   bool
		prepare func(*cluster)
		change  func(*cluster)
		check   func(c *cluster, before [2]appsv1.DeploymentSpec)
		state   patch.State
		options []func(*patcher)
		// writes is how many there are at least, so that something is tested.
		writes int
	}{
		"patching": {
			check: func(c *cluster, _ [2]appsv1.DeploymentSpec) {
				c.wantOverrides(`{"other":1,"` + key + `":true}`)
				c.shaped(serverKey, 1, "0", "1", false)
				c.shaped(apiServerKey, 1, "1", "0", true)
			},
			state: patch.InForce, writes: 3,
		},
		"to several nodes": {
			prepare: func(c *cluster) { c.looker().settle() },
			change: func(c *cluster) {
				c.flip(ha)
				c.installNodes(3)
			},
			check: func(c *cluster, _ [2]appsv1.DeploymentSpec) {
				c.wantOverrides(`{"other":1}`)
				c.shaped(serverKey, 3, "2", "3", true)
				c.shaped(apiServerKey, 3, "1", "0", true)
			},
			state: patch.InForce, writes: 3,
		},
		"forcing": {
			stock: true,
			check: func(c *cluster, _ [2]appsv1.DeploymentSpec) {
				c.shaped(serverKey, 1, "0", "1", false)
				c.shaped(apiServerKey, 1, "1", "0", true)
			},
			state: patch.InForce, options: []func(*patcher){forced}, writes: 3,
		},
		"giving back what was forced": {
			stock:   true,
			prepare: func(c *cluster) { c.looker(forced).settle() },
			change:  optOut,
			check: func(c *cluster, before [2]appsv1.DeploymentSpec) {
				c.wantOverrides(`{"other":1}`)
				c.ownsNothing()
				if diff := cmp.Diff(before, specs(c)); diff != "" {
					c.Errorf("the Deployments are not as they were (-was +is):\n%s", diff)
				}
				for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
					if got, err := ownership.Managers(c.deployment(k), auth.FieldRequiredAntiAffinity); err != nil || fmt.Sprint(got) != "[authentication-operator]" {
						c.Errorf("the anti-affinity of %s belongs to %v, %v", k.Name, got, err)
					}
				}
			},
			state: patch.OptedOut, options: []func(*patcher){forced}, writes: 5,
		},
	} {
		for _, unheard := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, answer lost: %t", name, unheard), func(t *testing.T) {
				for n := 0; ; n++ {
					c := install(t, sr, needs, 1)
					c.edit("oc", `{"unsupportedConfigOverrides":{"other":1}}`)
					if test.stock {
						c.stockWrites()
					}
					before := specs(c)
					if test.prepare != nil {
						test.prepare(c)
					}
					if test.change != nil {
						test.change(c)
					}
					k := &crashing{left: n, unheard: unheard}
					// One look after the other until the process is gone, or has nothing left to do.
					first := c.lookerBy(k.client(c.ours()), test.options...)
					for range 4 {
						first.look()
					}
					second := c.looker(test.options...)
					second.want(second.settle(), test.state, map[patch.State]string{patch.InForce: "AsExpected", patch.OptedOut: "OptedOut"}[test.state])
					test.check(c, before)
					second.atRest()
					c.clear()
					if t.Failed() {
						t.Fatalf("at write %d", n)
					}
					if !k.happened {
						if n < test.writes {
							t.Errorf("only %d writes, want at least %d", n, test.writes)
						}
						return
					}
				}
			})
		}
	}
}
