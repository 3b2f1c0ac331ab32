// SPDX-License-Identifier: Apache-2.0

// Package unsupportedconfig reads boolean keys of spec.unsupportedConfigOverrides, which has no schema. The topology
// replaces the single-node overrides (R-ETC-1, R-AUTH-1), but they are honored while they are set.
package unsupportedconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ErrUnreadable is returned for an invalid spec.unsupportedConfigOverrides or key. It never counts as false.
var ErrUnreadable = errors.New("unreadable unsupportedConfigOverrides")

// Switch is one boolean key.
type Switch struct{ Present, Value bool }

// Deprecation returns a sentence about a present switch, else "".
func (s Switch) Deprecation(key string) string {
	switch {
	case !s.Present:
		return ""
	case s.Value:
		return "The override " + key + " is deprecated: it is honored, but the topology decides without it; remove it"
	}
	return "The override " + key + " is deprecated and false, which changes nothing; remove it"
}

// Read reads a top-level key as the operators do (U-ETC-2, U-AUTH-5): of a JSON or YAML object, in this spelling, a
// boolean or a string that strconv.ParseBool accepts. No bytes and null are no override. Anything else, also a
// duplicate key, which the operators accept, is an ErrUnreadable. Read also returns the JSON of all top-level values.
func Read(raw []byte, key string) (Switch, map[string]json.RawMessage, error) {
	values, err := members(raw)
	if err != nil {
		return Switch{}, nil, fmt.Errorf("%w: spec.unsupportedConfigOverrides: %w; repair it or remove it", ErrUnreadable, err)
	}
	found, err := valueOf(key, values)
	return found, values, err
}

func valueOf(key string, values map[string]json.RawMessage) (Switch, error) {
	value, ok := values[key]
	if !ok {
		return Switch{}, nil
	}
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return Switch{}, fmt.Errorf("%w: spec.unsupportedConfigOverrides.%s: %w", ErrUnreadable, key, err)
	}
	switch decoded := decoded.(type) {
	case nil:
		return Switch{}, nil
	case bool:
		return Switch{Present: true, Value: decoded}, nil
	case string:
		parsed, err := strconv.ParseBool(decoded)
		if err == nil {
			return Switch{Present: true, Value: parsed}, nil
		}
	}
	return Switch{}, fmt.Errorf("%w: spec.unsupportedConfigOverrides.%s is %s; want true or false, or remove it", ErrUnreadable, key, value)
}

// members returns the top-level values of a JSON or YAML object. As in the operators, a brace starts JSON.
func members(raw []byte) (map[string]json.RawMessage, error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0:
		return nil, nil
	case trimmed[0] != '{':
		converted, err := yaml.YAMLToJSONStrict(raw)
		if err != nil {
			return nil, err
		}
		raw = converted
	}
	var values map[string]json.RawMessage
	strict, err := kjson.UnmarshalStrict(raw, &values)
	if err = errors.Join(append(strict, err)...); errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, errors.New("not an object")
	}
	return values, err
}
