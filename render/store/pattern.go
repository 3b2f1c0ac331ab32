// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is namespace and name of an object. Namespace is empty for a cluster-scoped one.
type Object struct {
	Namespace, Name string
}

// String returns NAMESPACE/NAME.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Pattern selects objects of one resource in any version. Namespace and Name may end in an asterisk.
type Pattern struct {
	Group, Resource string
	Namespace, Name string
}

// String returns RESOURCE.GROUP NAMESPACE/NAME.
func (p Pattern) String() string {
	return key{GroupResource: schema.GroupResource{Group: p.Group, Resource: p.Resource}, Object: Object{p.Namespace, p.Name}}.String()
}

func (p Pattern) matches(k key) bool {
	return p.Group == k.Group && p.Resource == k.Resource && matches(p.Namespace, k.Namespace) && matches(p.Name, k.Name)
}

func matches(pattern, s string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(s, prefix)
	}
	return pattern == s
}

func anyMatches(patterns []Pattern, k key) bool {
	for _, p := range patterns {
		if p.matches(k) {
			return true
		}
	}
	return false
}

// Patterns returns patterns for objects of one resource in one namespace; "" for cluster-scoped ones.
func Patterns(group, resource, namespace string, names ...string) []Pattern {
	patterns := make([]Pattern, 0, len(names))
	for _, name := range names {
		patterns = append(patterns, Pattern{Group: group, Resource: resource, Namespace: namespace, Name: name})
	}
	return patterns
}

// ConfigMaps returns patterns for ConfigMaps in one namespace.
func ConfigMaps(namespace string, names ...string) []Pattern {
	return Patterns("", "configmaps", namespace, names...)
}

// Secrets returns patterns for Secrets in one namespace.
func Secrets(namespace string, names ...string) []Pattern {
	return Patterns("", "secrets", namespace, names...)
}

// key identifies an object, in any version of its API.
type key struct {
	schema.GroupResource
	Object
}

func (k key) String() string {
	return fmt.Sprintf("%s %s", k.GroupResource, k.Object)
}
