// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// A key with two owners stays when one of them releases it. The CRD accepts only objects.
func TestAPIServerSameKey(t *testing.T) {
	c := &cluster{suite.Cluster(t)}
	c.Create("oc", authenticationOf(`{"managementState":"Managed","unsupportedConfigOverrides":`+set+`}`))
	for _, spec := range []string{`{"unsupportedConfigOverrides":` + set + `}`, `{}`} {
		c.NoError(c.Admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(authenticationOf(spec)), client.FieldOwner(decision.FieldOwner)))
		c.Check(c.overridesAre(set))
	}
	for _, value := range []string{`"` + key + `: true"`, `"{\"` + key + `\":true}"`, `[1]`, `true`, `7`} {
		err := c.Admin.Create(t.Context(), authenticationOf(`{"managementState":"Managed","unsupportedConfigOverrides":`+value+`}`),
			client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be of type object") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// The API server tracks ownership by key: keys of others do not change, and their owners can edit them without a
// conflict. After a release of the only key, null stays.
func TestOthersKeysSurvive(t *testing.T) {
	const theirs = `{"a":{"list":[1,{"x":2.5}],"null":null,"text":"<&>"},"big":9007199254740993,"empty":{},"zzz":false}`
	created := func(overrides string) func(*cluster) {
		return func(c *cluster) {
			c.Delete(authenticationObject)
			c.Create("cluster-version-operator", authenticationOf(`{"managementState":"Managed"`+overrides+`}`))
		}
	}
	for name, test := range map[string]struct {
		write func(*cluster)
		after string
	}{
		"absent":              {created(""), "absent"},
		"null":                {created(`,"unsupportedConfigOverrides":null`), "null"},
		"empty":               {created(`,"unsupportedConfigOverrides":{}`), "null"},
		"created with object": {created(`,"unsupportedConfigOverrides":` + theirs), theirs},
		"updated": {func(c *cluster) {
			c.editOverrides("cluster-version-operator", "null")
			a := c.authentication()
			a.Spec.UnsupportedConfigOverrides.Raw = []byte(theirs)
			c.Update("oc", a)
		}, theirs},
		"applied": {func(c *cluster) { c.Apply("gitops", authenticationOf(`{"unsupportedConfigOverrides":`+theirs+`}`)) }, theirs},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, sr, needs, 1)
			test.write(c)
			both, after := set, test.after
			if after == theirs {
				after = c.overrides()
				both = strings.Replace(after, `,"zzz"`, `,"`+key+`":true,"zzz"`, 1)
			}
			l := c.reconciler()
			for range 2 {
				c.flip(sr)
				l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
				c.Check(c.overridesAre(both))
				l.CheckNoWrites()
				if test.after == theirs {
					c.editOverrides("oc", `{"a":{"text":"new"}}`)
					l.CheckNoWrites()
					c.editOverrides("oc", `{"a":{"text":"<&>"}}`)
				}
				c.flip(ha)
				l.Settle()
				c.Check(c.overridesAre(after))
				l.CheckNoWrites()
			}
		})
	}
}

// An override of another client stays, also with --force-conflicts, and also when it replaces the module's.
func TestPersonsOverride(t *testing.T) {
	for value, want := range map[string]struct {
		state  patch.State
		reason string
	}{
		"true":    {patch.InForce, "AsExpected"},
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
				l := c.reconciler("--force-conflicts")
				if when == "after" {
					l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
				}
				c.editOverrides("oc", `{"`+key+`":`+value+`}`)
				theirs := c.overrides()
				l.CheckResult(l.Settle(), want.state, want.reason)
				l.CheckNoWrites()
				c.Check(c.onOne)
				c.flip(ha)
				l.Settle()
				l.CheckNoWrites()
				if value == "true" && when == "after" {
					// A patch that changes nothing adds no owner.
					c.Check(c.overridesAre("absent"))
					return
				}
				c.Check(c.overridesAre(theirs))
				if !strings.Contains(c.fieldsOf("oc"), key) {
					t.Errorf("oc does not own it: %s", c.fieldsOf("oc"))
				}
			})
		}
	}
}

func TestOverrideByRelease(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.reconciler()
	l.Settle()
	c.Check(c.overridesAre(set))
	c.upgrade(needsNot)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.Check(c.overridesAre("absent"))
	l.CheckNoWrites()
	for policy, want := range map[string]string{"always": set, "never": "absent"} {
		l = c.reconciler("--override=" + policy)
		l.Settle()
		c.Check(c.overridesAre(want))
		l.CheckNoWrites()
	}
}

// Another client writes between the module's read and its write, with --force-conflicts.
func TestOverrideRaces(t *testing.T) {
	for name, test := range map[string]struct {
		before, meanwhile string
		after             string
		state             patch.State
		reason            string
	}{
		"another key":   {"null", `{"other":1}`, `{"other":1,"` + key + `":true}`, patch.InForce, "AsExpected"},
		"false":         {"null", `{"` + key + `":false}`, `{"` + key + `":false}`, patch.Blocked, "FieldOwnedByOther"},
		"true":          {"null", set, set, patch.InForce, "AsExpected"},
		"key removed":   {`{"other":1}`, `{"other":null}`, set, patch.InForce, "AsExpected"},
		"field removed": {`{"other":1}`, `null`, set, patch.InForce, "AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, sr, needs, 1)
			c.editOverrides("oc", test.before)
			l := c.reconciler("--force-conflicts")
			var once sync.Once
			l.CrashInjector.BeforeRequest(func(r *http.Request) {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "authentications") {
					once.Do(func() { c.editOverrides("oc", test.meanwhile) })
				}
			})
			l.CheckResult(l.Settle(), test.state, test.reason)
			c.Check(c.overridesAre(test.after))
			l.CheckNoWrites()
		})
	}
}

// No key is lost while another client keeps updating the object.
func TestConcurrentUpdates(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.reconciler()
	updates, stop := c.KeepEditing("editor", authenticationObject, func(u *unstructured.Unstructured, n int) {
		if err := unstructured.SetNestedField(u.Object, int64(n), "spec", "unsupportedConfigOverrides", fmt.Sprint("key", n)); err != nil {
			t.Error(err)
		}
	})
	i := 0
	c.Eventually("30 reconciliations and five updates", func() error {
		c.flip([]configv1.TopologyMode{sr, ha}[i%2])
		if result := l.Reconcile(); result.State == patch.Failed || result.State == patch.Reverted || result.State == patch.Blocked {
			t.Errorf("reconciliation %d: %v", i, result)
		}
		if i++; i < 30 || updates() < 5 {
			return fmt.Errorf("%d reconciliations, %d updates", i, updates())
		}
		return nil
	})
	edits := stop()
	c.flip(sr)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	want := map[string]any{key: true}
	for n := range edits {
		want[fmt.Sprint("key", n)] = n
	}
	encoded, err := json.Marshal(want)
	c.NoError(err)
	c.Check(c.overridesAre(string(encoded)))
}

// An override that another client removes is set again after a back-off.
func TestOverrideRemovedByAnother(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.reconciler()
	l.Settle()
	c.editOverrides("oc", `{"`+key+`":null}`)
	result := l.Settle()
	if l.CheckResult(result, patch.Reverted, "Reverted"); result.After != apply.DefaultRevertBackoff {
		t.Errorf("retry in %s", result.After)
	}
	l.CheckNoWrites()
	c.Check(c.overridesAre("{}"))
}
