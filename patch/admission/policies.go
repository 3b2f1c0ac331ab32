// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Writable is a resource of other clients that a module changes, and what it may change of it.
type Writable struct {
	Group, Resource string            // Resource with the subresource, such as consoles/status
	Namespaces      []string          // those of other modules, with the same account, are not limited by it
	Fields          []string          // such as .spec.replicas or .data["config.yaml"]
	Elements        map[string]string // by the field of a list, the condition in CEL on an element e
}

// Conditions is the Writable of a module's conditions in a status.
func Conditions(group, resource, prefix string) Writable {
	return Writable{Group: group, Resource: resource + "/status", Elements: map[string]string{".status.conditions": fmt.Sprintf("e.type.startsWith(%q)", prefix)}}
}

// Overrides is the Writable of entries in the ClusterVersion.
func Overrides(entries []configv1.ComponentOverride, fields ...string) Writable {
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

// Policies returns the ValidatingAdmissionPolicies, with bindings, that limit the service account of a program in
// namespace sno-system to these fields. Each variable has the value in the new object and that in the old one; an
// absent map counts as an empty one, which a release may leave.
func Policies(program string, writable ...Writable) string {
	var out strings.Builder
	out.WriteString(comment)
	for _, w := range writable {
		name := program + "-" + strings.ReplaceAll(w.Resource, "/", "-")
		fmt.Fprintf(&out, policyHead, name, w.Group, w.Resource, program)
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
  - {name: account, expression: 'request.userInfo.username == "system:serviceaccount:sno-system:sno-%s"'}
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

const comment = `# What the account may change of objects of others, from the fields that modules patch: go test -run TestPolicies -update
# The policies get the prefix sno-, which old versions of kustomize do not add to policyName.
`
