package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
)

// What the API server does with server-side apply inside spec.unsupportedConfigOverrides, which has no schema
// (x-kubernetes-preserve-unknown-fields). The decision about the override counts on all of this.

const whole = ".spec.unsupportedConfigOverrides"

// tryApply applies without force, and tells the fields and managers of a conflict.
func (c *cluster) tryApply(fieldManager, spec string) string {
	c.Helper()
	err := c.admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(authenticationOf(spec)), client.FieldOwner(fieldManager))
	switch {
	case err == nil:
		return ""
	case !apierrors.IsConflict(err):
		c.Fatal(err)
	}
	return err.Error()
}

// fieldsOf is the managedFields entry of a manager, as text; empty where there is none.
func (c *cluster) fieldsOf(fieldManager string) string {
	c.Helper()
	for _, entry := range c.authentication().ManagedFields {
		if entry.Manager == fieldManager && entry.Subresource == "" {
			text, err := entry.FieldsV1.MarshalJSON()
			if err != nil {
				c.Fatal(err)
			}
			return string(text)
		}
	}
	return ""
}

const ours = `{"unsupportedConfigOverrides":{"` + key + `":true}}`

func TestAPIServerKeepsAccountKeyByKey(t *testing.T) {
	c := newCluster(t, shared.Server(t))
	const theirs = `{"list":[1,{"x":2.50}],"nested":{"a":{"b":null,"c":"d"}}}`
	c.installAuthentication(`{"managementState":"Managed","unsupportedConfigOverrides":` + theirs + `}`)
	before := c.overrides()

	if conflict := c.tryApply(auth.FieldOwner, ours); conflict != "" {
		t.Fatalf("a key beside others conflicts: %s", conflict)
	}
	if diff := cmp.Diff(`{"f:spec":{"f:unsupportedConfigOverrides":{"f:`+key+`":{}}}}`, c.fieldsOf(auth.FieldOwner)); diff != "" {
		t.Errorf("we own (-want +got):\n%s", diff)
	}
	c.wantOverrides(strings.TrimSuffix(before, "}") + `,"` + key + `":true}`)

	// Another manager edits its own key afterwards, nested or not, and we are not asked.
	c.edit("oc", `{"unsupportedConfigOverrides":{"nested":{"a":{"c":"e"}},"more":1}}`)
	if !strings.Contains(c.fieldsOf(auth.FieldOwner), key) {
		t.Error("an edit of another key takes ours away")
	}
	c.edit("oc", `{"unsupportedConfigOverrides":{"nested":{"a":{"c":"d"}},"more":null}}`)

	if conflict := c.tryApply(auth.FieldOwner, ""); conflict != "" {
		t.Fatal(conflict)
	}
	c.wantOverrides(before)
}

// What is left when the only key goes again, by what was there before it. All of it is accepted by the CRD, and read as none.
func TestAPIServerAfterTheOnlyKey(t *testing.T) {
	for before, after := range map[string]string{
		"":     "absent",
		"null": "null",
		"{}":   "null",
	} {
		t.Run(fmt.Sprintf("%q", before), func(t *testing.T) {
			c := newCluster(t, shared.Server(t))
			spec := `{"managementState":"Managed"}`
			if before != "" {
				spec = `{"managementState":"Managed","unsupportedConfigOverrides":` + before + `}`
			}
			c.installAuthentication(spec)
			if conflict := c.tryApply(auth.FieldOwner, ours); conflict != "" {
				t.Fatalf("over %q it conflicts: %s", before, conflict)
			}
			c.wantOverrides(`{"` + key + `":true}`)
			if conflict := c.tryApply(auth.FieldOwner, ""); conflict != "" {
				t.Fatal(conflict)
			}
			c.wantOverrides(after)
			if override, err := auth.ReadOverride(c.authentication().Spec.UnsupportedConfigOverrides.Raw); err != nil || override.Present {
				t.Errorf("what is left reads as %+v, %v", override, err)
			}
			// Its owner can still write.
			c.edit("cluster-version-operator", `{"unsupportedConfigOverrides":{"a":1}}`)
			c.wantOverrides(`{"a":1}`)
		})
	}
}

// A key with another value belongs to whom wrote it, null included; one with an equal value belongs to both, and stays when
// one of them lets go.
func TestAPIServerSameKey(t *testing.T) {
	for value, conflicts := range map[string]bool{"false": true, `"true"`: true, "null": true, "true": false} {
		t.Run(value, func(t *testing.T) {
			c := newCluster(t, shared.Server(t))
			c.installAuthentication(`{"managementState":"Managed"}`)
			c.edit("oc", `{"managementState":"Managed"}`)
			u := c.authentication()
			u.Spec.UnsupportedConfigOverrides.Raw = []byte(`{"` + key + `":` + value + `}`)
			if err := c.admin.Update(t.Context(), u, client.FieldOwner("oc")); err != nil {
				t.Fatal(err)
			}
			got := c.tryApply(auth.FieldOwner, ours)
			if conflicts != (strings.Contains(got, `"oc"`) && strings.Contains(got, whole+"."+key)) || conflicts == (got == "") {
				t.Errorf("conflict: %q, want one: %t", got, conflicts)
			}
			if !conflicts {
				_ = c.tryApply(auth.FieldOwner, "") // no fields, no conflict
			}
			c.wantOverrides(`{"` + key + `":` + value + `}`)
		})
	}
}

// Only an object or null can be stored: the YAML form and other text never come from this CRD.
func TestAPIServerRefusesText(t *testing.T) {
	c := newCluster(t, shared.Server(t))
	for _, value := range []string{`"` + key + `: true"`, `"{\"` + key + `\":true}"`, `[1]`, `true`, `7`} {
		err := c.admin.Create(t.Context(), authenticationOf(`{"managementState":"Managed","unsupportedConfigOverrides":`+value+`}`),
			client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be of type object") {
			t.Errorf("%s: %v", value, err)
		}
	}
}
