package controller

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
)

const set = `{"` + key + `":true}`

// A person's keys survive setting and removing, byte for byte, however they were written.
func TestOthersKeysSurvive(t *testing.T) {
	const theirs = `{"a":{"list":[1,{"x":2.5}],"null":null,"text":"<&>"},"big":9007199254740993,"empty":{},"zzz":false}`
	for name, write := range map[string]func(*cluster){
		"made with the object": func(c *cluster) {
			c.installAuthentication(`{"managementState":"Managed","unsupportedConfigOverrides":` + theirs + `}`)
		},
		"updated": func(c *cluster) {
			c.installAuthentication(`{"managementState":"Managed","unsupportedConfigOverrides":null}`)
			a := c.authentication()
			a.Spec.UnsupportedConfigOverrides.Raw = []byte(theirs)
			if err := c.admin.Update(c.Context(), a, client.FieldOwner("oc")); err != nil {
				c.Fatal(err)
			}
		},
		"applied": func(c *cluster) {
			c.installAuthentication(`{"managementState":"Managed"}`)
			c.apply(authenticationOf(`{"unsupportedConfigOverrides":`+theirs+`}`), "gitops")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, shared.Server(t))
			c.installInfrastructure(sr)
			c.installRelease(needs)
			c.installDeployments()
			c.installNodes(1)
			write(c)
			before := c.overrides()
			l := c.looker()
			for range 2 {
				c.flip(sr)
				l.want(l.settle(), patch.InForce, "AsExpected")
				if got, want := c.overrides(), strings.Replace(before, `,"zzz"`, `,"`+key+`":true,"zzz"`, 1); got != want {
					t.Errorf("with ours: %s, want %s", got, want)
				}
				l.atRest()
				c.flip(ha)
				l.settle()
				c.wantOverrides(before)
				l.atRest()
			}
		})
	}
}

// A person's override is left alone, whatever it says, whatever is forced, in both topologies, and also when it was written
// over ours.
func TestPersonsOverride(t *testing.T) {
	for value, want := range map[string]struct {
		state  patch.State
		reason string
	}{
		"true":    {patch.InForce, "AsExpected"}, // theirs is as good as ours
		`"true"`:  {patch.InForce, "AsExpected"},
		"false":   {patch.Blocked, "FieldOwnedByOther"},
		`"f"`:     {patch.Blocked, "FieldOwnedByOther"},
		`"maybe"`: {patch.Failed, "Invalid"},
		"7":       {patch.Failed, "Invalid"},
		"{}":      {patch.Failed, "Invalid"},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(value+" "+when, func(t *testing.T) {
				c := install(t, sr, needs, 1)
				l := c.looker(forced)
				if when == "after" {
					l.want(l.settle(), patch.InForce, "AsExpected")
				}
				c.edit("oc", `{"unsupportedConfigOverrides":{"`+key+`":`+value+`}}`)
				theirs := c.overrides()
				l.want(l.settle(), want.state, want.reason)
				l.atRest()
				c.flip(ha)
				l.settle()
				l.atRest()
				if value == "true" && when == "after" {
					// A merge patch with the value that is there changes nothing and makes nobody an owner.
					c.wantOverrides("absent")
					return
				}
				c.wantOverrides(theirs)
				if !strings.Contains(c.fieldsOf("oc"), key) {
					t.Errorf("it is no longer theirs: %s", c.fieldsOf("oc"))
				}
			})
		}
	}
}

// An override that cannot be read is an error, and nothing is written to the object, in every topology.
func TestUnreadableOverride(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.edit("oc", `{"unsupportedConfigOverrides":{"`+key+`":"yes please","other":1}}`)
	l := c.looker(policy(auth.OverrideAlways))
	before := c.authentication().ResourceVersion
	result := l.settle()
	l.want(result, patch.Failed, "Invalid")
	if !strings.Contains(result.Message, key) || !strings.Contains(result.Message, "want true or false, or remove it") {
		t.Errorf("the message does not say what to do: %s", result.Message)
	}
	// The Deployments stand for themselves.
	c.shaped(serverKey, 1, "0", "1", false)
	c.flip(ha)
	c.installNodes(3)
	l.want(l.settle(), patch.Failed, "Invalid")
	if after := c.authentication().ResourceVersion; after != before {
		t.Error("the object was written")
	}
	c.edit("oc", `{"unsupportedConfigOverrides":{"`+key+`":null}}`)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.wantOverrides(`{"other":1}`)
}

// The override follows the release and the flag.
func TestOverrideByRelease(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.looker()
	l.settle()
	c.wantOverrides(set)
	c.upgrade(needsNot)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.wantOverrides("absent")
	l.atRest()

	l = c.looker(policy(auth.OverrideAlways))
	l.settle()
	c.wantOverrides(set)
	l.atRest()
	l = c.looker(policy(auth.OverrideNever))
	l.settle()
	c.wantOverrides("absent")
	l.atRest()
}

// An annotation keeps the module away from one object, and it gives back what it had there.
func TestOptOut(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.looker()
	l.settle()
	const away = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"auth"}}}`
	c.patch(authenticationOf(""), "oc", away)
	l.want(l.settle(), patch.OptedOut, "OptedOut")
	c.wantOverrides("absent")
	c.shaped(serverKey, 1, "0", "1", false)
	l.atRest()
	for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
		c.patch(object("apps/v1", "Deployment", k.Namespace, k.Name), "oc", away)
	}
	l.want(l.settle(), patch.OptedOut, "OptedOut")
	c.ownsNothing()
	l.atRest()
}

// What happens between reading and writing is decided by the API server, and the next look sees it.
func TestOverrideRaces(t *testing.T) {
	for name, test := range map[string]struct {
		before, meanwhile string
		after             string
		state             patch.State
		reason            string
	}{
		"another key":    {"", `{"unsupportedConfigOverrides":{"other":1}}`, `{"other":1,"` + key + `":true}`, patch.InForce, "AsExpected"},
		"false":          {"", `{"unsupportedConfigOverrides":{"` + key + `":false}}`, `{"` + key + `":false}`, patch.Blocked, "FieldOwnedByOther"},
		"true":           {"", `{"unsupportedConfigOverrides":{"` + key + `":true}}`, set, patch.InForce, "AsExpected"},
		"key goes":       {`{"unsupportedConfigOverrides":{"other":1}}`, `{"unsupportedConfigOverrides":{"other":null}}`, set, patch.InForce, "AsExpected"},
		"the field goes": {`{"unsupportedConfigOverrides":{"other":1}}`, `{"unsupportedConfigOverrides":null}`, set, patch.InForce, "AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, sr, needs, 1)
			if test.before != "" {
				c.edit("oc", test.before)
			}
			l := c.looker()
			read, err := l.patcher.gather(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.edit("oc", test.meanwhile)
			l.patcher.steps(t.Context(), read)
			l.want(l.settle(), test.state, test.reason)
			c.wantOverrides(test.after)
			l.atRest()
		})
	}

	// The object goes, or goes and comes back, between reading and writing: nothing is made, nothing is written to the new one
	// by an old decision.
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("object deleted, made again: %t", again), func(t *testing.T) {
			c := install(t, sr, needs, 1)
			l := c.looker()
			read, err := l.patcher.gather(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.admin.Delete(t.Context(), authenticationOf("")); err != nil {
				t.Fatal(err)
			}
			if again {
				c.installAuthentication(`{"managementState":"Managed","unsupportedConfigOverrides":{"new":1}}`)
			}
			l.want(l.patcher.steps(t.Context(), read)[0], patch.Waiting, "WaitingForObject")
			if again {
				c.wantOverrides(`{"new":1}`)
				l.settle()
				c.wantOverrides(`{"new":1,"` + key + `":true}`)
			} else if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "cluster"}, authenticationOf("")); !apierrors.IsNotFound(err) {
				t.Errorf("it was made: %v", err)
			}
		})
	}
}

// Another client reads, changes and writes the whole object all the time, as operators and `oc edit` do, while the override comes
// and goes. It conflicts and tries again; nothing of either is lost.
func TestReadModifyWriteAtTheSameTime(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.looker()
	const edits = 40
	var wait sync.WaitGroup
	conflicts := 0
	wait.Add(1)
	go func() {
		defer wait.Done()
		for n := 0; n < edits; {
			u := authenticationOf("")
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "cluster"}, u); err != nil {
				t.Error(err)
				return
			}
			spec := u.Object["spec"].(map[string]any)
			overrides, _ := spec["unsupportedConfigOverrides"].(map[string]any)
			if overrides == nil {
				overrides = map[string]any{}
				spec["unsupportedConfigOverrides"] = overrides
			}
			overrides[fmt.Sprintf("key%02d", n)] = int64(n)
			switch err := c.admin.Update(t.Context(), u, client.FieldOwner("editor")); {
			case apierrors.IsConflict(err):
				conflicts++
			case err != nil:
				t.Error(err)
				return
			default:
				n++
			}
		}
	}()
	for i := range 30 {
		mode := sr
		if i%2 == 1 {
			mode = ha
		}
		c.flip(mode)
		result := l.look()
		if result.State == patch.Failed || result.State == patch.Reverted || result.State == patch.Blocked {
			t.Errorf("look %d: %v", i, result)
		}
	}
	wait.Wait()
	c.flip(sr)
	l.want(l.settle(), patch.InForce, "AsExpected")
	got := c.overrides()
	for n := range edits {
		if !strings.Contains(got, fmt.Sprintf(`"key%02d":%d`, n, n)) {
			t.Errorf("key %d is lost: %s", n, got)
		}
	}
	if !strings.Contains(got, `"`+key+`":true`) {
		t.Errorf("ours is lost: %s", got)
	}
	t.Logf("%d conflicts", conflicts)
}

// Somebody who takes the override off whenever it is there is not fought: one more try after each pause, and longer pauses.
func TestReverter(t *testing.T) {
	c := install(t, sr, needs, 1)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	l := c.looker(func(p *patcher) { p.authentication.Clock = clock })
	l.settle()
	revert := func() { c.edit("reverter", `{"unsupportedConfigOverrides":{"`+key+`":null}}`) }
	for round, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
		revert()
		result := l.settle()
		l.want(result, patch.Reverted, "Reverted")
		if result.After != pause {
			t.Errorf("round %d: again after %s, want %s", round, result.After, pause)
		}
		c.wantOverrides("{}")
		l.atRest()
		clock.SetTime(clock.Now().Add(pause - time.Second))
		l.want(l.look(), patch.Reverted, "Reverted")
		l.atRest()
		clock.SetTime(clock.Now().Add(2 * time.Second))
		if writes := c.server.WritesDuring(t, ourUser, func() { l.look() }); len(writes) != 1 {
			t.Errorf("round %d: %d writes after the pause, want one: %v", round, len(writes), writes)
		}
		c.wantOverrides(set)
	}
	l.want(l.settle(), patch.InForce, "AsExpected")
}
