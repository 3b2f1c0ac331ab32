// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	under := map[string]any{
		"kind":              "Config",
		"extendedArguments": map[string]any{"controllers": []any{"*", "-ttl"}, "secure-port": []any{"1"}},
	}
	over := map[string]any{"extendedArguments": map[string]any{"controllers": []any{"one"}}, "new": map[string]any{"a": true}}
	got := Merge(under, over)
	want := map[string]any{
		"kind":              "Config",
		"extendedArguments": map[string]any{"controllers": []any{"one"}, "secure-port": []any{"1"}},
		"new":               map[string]any{"a": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got["new"].(map[string]any)["a"] = false
	got["extendedArguments"].(map[string]any)["secure-port"].([]any)[0] = "2"
	if over["new"].(map[string]any)["a"] != true || under["extendedArguments"].(map[string]any)["secure-port"].([]any)[0] != "1" {
		t.Error("a change of the result must not change its inputs")
	}
}

func TestArgument(t *testing.T) {
	want := map[string]any{"extendedArguments": map[string]any{"cluster-cidr": []any{"a", "b"}}}
	if diff := cmp.Diff(want, Argument("cluster-cidr", "a", "b")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{}, Argument("cluster-cidr")); diff != "" {
		t.Errorf("no value gives nothing (-want +got):\n%s", diff)
	}
}

func TestKeep(t *testing.T) {
	config := map[string]any{"extendedArguments": 1, "targetconfigcontroller": 2}
	if diff := cmp.Diff(map[string]any{"extendedArguments": 1}, Select(config, "extendedArguments", "projectConfig")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		arguments any
		want      []string
		fails     bool
	}{
		"sorted by name, values in order": {
			arguments: map[string]any{"b": []any{"2", "1"}, "a": []any{"x"}}, want: []string{"--a=x", "--b=2", "--b=1"},
		},
		"no values":         {arguments: map[string]any{"a": []any{}}},
		"none":              {},
		"not a list":        {arguments: map[string]any{"a": "x"}, fails: true},
		"not a string":      {arguments: map[string]any{"a": []any{true}}, fails: true},
		"arguments, no map": {arguments: "a", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{}
			if test.arguments != nil {
				config["extendedArguments"] = test.arguments
			}
			got, err := Flags(config, "extendedArguments")
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
