// SPDX-License-Identifier: Apache-2.0

package patchtest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

// Writable is a resource of other clients that a module changes, and what it may change of it.
type Writable struct {
	Group, Resource string            // Resource with the subresource, such as consoles/status
	Namespaces      []string          // those of other modules, with the same account, are not limited by it
	Fields          []string          // such as .spec.replicas or .data["config.yaml"]
	Elements        map[string]string // by the field of a list, the condition in CEL on an element e
}

// WritableConditions is the Writable of a module's conditions in a status.
func WritableConditions(group, resource, prefix string) Writable {
	return Writable{Group: group, Resource: resource + "/status", Elements: map[string]string{".status.conditions": fmt.Sprintf("e.type.startsWith(%q)", prefix)}}
}

// WritableOverrides is the Writable of entries in the ClusterVersion.
func WritableOverrides(entries []configv1.ComponentOverride, fields ...string) Writable {
	var any []string
	for _, e := range entries {
		any = append(any, fmt.Sprintf("e.group == %q && e.kind == %q && e.namespace == %q && e.name == %q", e.Group, e.Kind, e.Namespace, e.Name))
	}
	return Writable{Group: configv1.GroupName, Resource: "clusterversions", Fields: fields,
		Elements: map[string]string{overrides.Field: strings.Join(any, " || ")}}
}

// Annotation returns the field of an annotation of an object.
func Annotation(key string) string { return fmt.Sprintf(".metadata.annotations[%q]", key) }

// ReplacedField is the field with the values that a module has replaced.
func ReplacedField(module string) string { return Annotation(patch.ReplacedAnnotation(module)) }

// level is an object of which some fields may change: as a whole, or, where it has a level, below.
type level struct {
	path   []string
	fields map[string]*level // nil for a field that may change as a whole
}

func (l *level) add(path []string) {
	below, known := l.fields[path[0]]
	if !known && len(path) > 1 {
		below = &level{path: append(slices.Clone(l.path), path[0]), fields: map[string]*level{}}
	}
	l.fields[path[0]] = below
	if len(path) > 1 {
		below.add(path[1:])
	}
}

func variable(path []string) string {
	name := "object"
	for _, p := range path {
		name += strings.ToUpper(p[:1]) + p[1:]
	}
	return name
}

func split(field string) []string {
	before, key, _ := strings.Cut(strings.TrimSuffix(field, `"]`), `["`)
	path := strings.Split(before[1:], ".")
	if key != "" {
		path = append(path, key)
	}
	return path
}

// Policies returns the ValidatingAdmissionPolicies, with bindings, that limit a user to these fields. Each variable has
// the value in the new object and that in the old one; an absent map counts as an empty one, which a release may leave.
func Policies(program, user string, writable ...Writable) string {
	var out strings.Builder
	for _, w := range writable {
		name := program + "-" + strings.ReplaceAll(w.Resource, "/", "-")
		fmt.Fprintf(&out, policyHead, name, w.Group, w.Resource, user)
		if len(w.Namespaces) > 0 {
			fmt.Fprintf(&out, "  - {name: namespace, expression: 'request.namespace in [%s]'}\n", `"`+strings.Join(w.Namespaces, `", "`)+`"`)
		}
		root := &level{fields: map[string]*level{}}
		lists := slices.Sorted(maps.Keys(w.Elements))
		byServer := []string{".metadata.generation", ".metadata.managedFields", ".metadata.resourceVersion"}
		for _, field := range slices.Concat(byServer, w.Fields, lists) {
			root.add(split(field))
		}
		var variables, validations strings.Builder
		fmt.Fprintf(&variables, "  - {name: object, expression: 'dyn([object, oldObject])'}\n")
		var walk func(*level)
		walk = func(l *level) {
			names, of, called := slices.Sorted(maps.Keys(l.fields)), variable(l.path), "the object"
			if len(l.path) > 0 {
				called = "." + strings.Join(l.path, ".")
			}
			fmt.Fprintf(&validations, "  - expression: 'variables.%[1]s.all(o, o.all(k, k in [%[2]s] || variables.%[1]s[0][?k] == variables.%[1]s[1][?k]))'\n"+
				"    message: 'The account may change only these fields of %[3]s: %[4]s'\n",
				of, `"`+strings.Join(names, `", "`)+`"`, called, strings.Join(names, ", "))
			for _, name := range names {
				below := l.fields[name]
				if below == nil {
					continue
				}
				fmt.Fprintf(&variables, "  - {name: %s, expression: 'variables.%s.map(o, o[?%q].orValue(dyn(null))).map(v, v == null ? {} : v)'}\n",
					variable(below.path), of, name)
				walk(below)
			}
		}
		walk(root)
		for _, field := range lists {
			path := split(field)
			last := len(path) - 1
			of := variable(path)
			fmt.Fprintf(&variables, "  - {name: %s, expression: 'variables.%s.map(o, o[?%q].orValue(dyn(null))).map(v, v == null ? [] : v)'}\n",
				of, variable(path[:last]), path[last])
			fmt.Fprintf(&validations, "  - expression: 'variables.%[1]s.all(l, l.all(e, %[2]s || variables.%[1]s.all(other, e in other)))'\n"+
				"    message: 'The account may change only its own elements of %[3]s'\n", of, w.Elements[field], field)
		}
		fmt.Fprintf(&out, "  variables:\n%s  validations:\n%s", &variables, &validations)
		fmt.Fprintf(&out, policyBinding, name)
	}
	return out.String()
}

const policyHead = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %s
  labels: {app.kubernetes.io/component: admission}
spec:
  # An expression that fails refuses the request, or it would limit nothing; it only concerns requests of this account.
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [%q]
      apiVersions: ["*"]
      operations: [UPDATE]
      resources: [%s]
  matchConditions:
  - {name: account, expression: 'request.userInfo.username == "%s"'}
`

const policyBinding = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: %[1]s
  labels: {app.kubernetes.io/component: admission}
spec:
  policyName: sno-%[1]s
  validationActions: [Deny]
`

const policiesComment = `# What the account may change of objects of others, from the fields that modules patch: go test -run TestPolicies -update
# The policies get the prefix sno-, which old versions of kustomize do not add to policyName.
`

// limit installs the policies for the account of the tests.
func (c *Cluster) limit() {
	c.Helper()
	for _, u := range parse(c, Policies(c.Suite.Program, c.Suite.User(), c.Suite.Writable...)) {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			u.SetName("sno-" + u.GetName())
		}
		c.Server.Put(c, u)
	}
}

// Change is a merge patch of an object, or of its status.
type Change struct {
	Object      controller.Object
	Status      bool
	Patch       string
	Permissible bool // otherwise a policy must refuse it
}

// PoliciesFile compares a file with the policies of an account in SystemNamespace, or writes it with -update.
func PoliciesFile(t *testing.T, path, name string, writable ...Writable) {
	t.Helper()
	text := policiesComment + Policies(name, AccountUser(SystemNamespace, "sno-"+name), writable...)
	if *update {
		NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // a manifest
	}
	got, err := os.ReadFile(path) //nolint:gosec // of this repository
	NoError(t, err)
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Errorf("%s (-generated +there), run with -update:\n%s", path, diff)
	}
}

// TestPolicies checks ../config/admission, and that its policies refuse changes by the program's account. They must
// also refuse labels and annotations of others.
func (c *Cluster) TestPolicies(changes ...Change) {
	c.Helper()
	PoliciesFile(c.T, "../config/admission/policies.yaml", c.Suite.Program, c.Suite.Writable...)
	account, err := client.New(c.config(), client.Options{Scheme: c.Server.Scheme()})
	c.NoError(err)
	for _, change := range changes {
		all := []Change{change}
		if !change.Status && !change.Permissible {
			for _, of := range []string{"labels", "annotations"} {
				all = append(all, Change{Object: change.Object, Patch: fmt.Sprintf(`{"metadata":{%q:{"example.com/other":"x"}}}`, of)})
			}
		}
		for _, change := range all {
			c.Run(change.Object.Kind+" "+change.Patch, func(t *testing.T) {
				// The policies become effective some time after they were installed.
				Eventually(t, "the answer of the policies", func() error { return change.try(t, account) })
			})
		}
	}
}

func (change Change) try(t *testing.T, account client.Client) error {
	t.Helper()
	var err error
	body := client.RawPatch(types.MergePatchType, []byte(change.Patch))
	if change.Status {
		err = account.Status().Patch(t.Context(), change.Object.Unstructured(), body, client.DryRunAll)
	} else {
		err = account.Patch(t.Context(), change.Object.Unstructured(), body, client.DryRunAll)
	}
	if refused := err != nil && strings.Contains(err.Error(), "denied request: The account may change only"); refused == change.Permissible || !refused && err != nil {
		return errors.Join(fmt.Errorf("permissible is %t", change.Permissible), err)
	}
	return nil
}
