package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrNotObserved is in the error of a target config when something was not observed without which its pod would not start.
var ErrNotObserved = errors.New("not observed yet")

// Nested returns a configuration that has the value at the path and nothing else.
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

// Argument returns the configuration of one flag under extendedArguments. No value at all gives an empty configuration.
func Argument(flag string, values ...string) map[string]any {
	if len(values) == 0 {
		return map[string]any{}
	}
	list := make([]any, len(values))
	for i := range values {
		list[i] = values[i]
	}
	return Nested(list, "extendedArguments", flag)
}

// Merge returns the configurations merged: maps by their keys, and of everything else, lists too, the last one counts. The result
// shares nothing with them. The operators merge in this way, so that an observed list replaces that of the defaults.
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

// Keep returns the configuration with the top-level fields that are named: what an operator observes for its pod is no field of
// the component's configuration.
func Select(config map[string]any, names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, has := config[name]; has {
			kept[name] = value
		}
	}
	return kept
}

// Flags returns --name=value for every value of every flag under the path, sorted by name; the values of one flag keep their order.
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
