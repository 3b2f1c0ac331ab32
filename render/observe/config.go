// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/store"
)

// ErrNotObserved is returned by a target config if a required value was not observed.
var ErrNotObserved = errors.New("not observed yet")

// From returns the observer of a resource of config.openshift.io, which is named cluster.
func From[T any, C interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
}](client func(configv1client.ConfigV1Interface) C, observe func(T) (map[string]any, error)) librarygo.Observer {
	return func(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
		object, err := client(s.Config().ConfigV1()).Get(ctx, "cluster", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return observe(object)
	}
}

// Nested returns a configuration with only the value at the path.
func Nested(value any, path ...string) map[string]any {
	config := map[string]any{}
	for i, name := range slices.Backward(path) {
		if i == len(path)-1 {
			config = map[string]any{name: value}
			continue
		}
		config = map[string]any{name: config}
	}
	return config
}

// Argument returns the configuration of one flag under extendedArguments; without values it is empty.
func Argument(flag string, values ...string) map[string]any {
	if len(values) == 0 {
		return map[string]any{}
	}
	return Nested(List(values), "extendedArguments", flag)
}

// List returns the values as in decoded JSON.
func List(values []string) []any {
	list := make([]any, len(values))
	for i := range values {
		list[i] = values[i]
	}
	return list
}

// Merge merges maps by key; the last one replaces other values, lists included. The result shares nothing with them.
func Merge(configs ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, config := range configs {
		for name, value := range config {
			over, isMap := value.(map[string]any)
			if !isMap {
				merged[name] = clone(value)
				continue
			}
			under, _ := merged[name].(map[string]any)
			merged[name] = Merge(under, over)
		}
	}
	return merged
}

func clone(value any) any {
	if list, is := value.([]any); is {
		return slices.Clone(list)
	}
	return value
}

// Select returns the named top-level fields: others are for the pod.
func Select(config map[string]any, names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, has := config[name]; has {
			kept[name] = value
		}
	}
	return kept
}

// Flags returns --name=value for every value of every flag under the path, sorted by name.
func Flags(config map[string]any, path ...string) ([]string, error) {
	arguments, _, err := unstructured.NestedMap(config, path...)
	if err != nil {
		return nil, fmt.Errorf("read the flags of the configuration: %w", err)
	}
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		values, isList := arguments[name].([]any)
		if !isList {
			return nil, fmt.Errorf("read the flags of the configuration: %s is a %T, not a list of strings", name, arguments[name])
		}
		for _, value := range values {
			text, isString := value.(string)
			if !isString {
				return nil, fmt.Errorf("read the flags of the configuration: a value of %s is a %T, not a string", name, value)
			}
			flags = append(flags, fmt.Sprintf("--%s=%s", name, text))
		}
	}
	return flags, nil
}
