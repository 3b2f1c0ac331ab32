package unsupportedconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/yaml"
)

// ErrUnreadable is returned for a spec.unsupportedConfigOverrides, or a switch in it, that cannot be understood. Somebody wanted
// something there, so it never counts as false.
var ErrUnreadable = errors.New("unreadable unsupportedConfigOverrides")

// Switch is what spec.unsupportedConfigOverrides says about one key. The zero Switch is its absence.
type Switch struct {
	// Present tells whether the key is there at all.
	Present bool
	// Value is what it says; false when it is absent.
	Value bool
}

// Deprecation is one stable sentence about a switch that is present, empty otherwise.
func (s Switch) Deprecation(key string) string {
	switch {
	case !s.Present:
		return ""
	case s.Value:
		return "The override " + key + " is deprecated: it is honored, but the topology decides without it; remove it"
	}
	return "The override " + key + " is deprecated and false, which changes nothing; remove it"
}

// Read reads the key from the raw bytes of spec.unsupportedConfigOverrides in every form that the operators accept
// (U-ETC-2, U-AUTH-5): a JSON or YAML object, in it, at its top level and in exactly this spelling, the key
// with a boolean or a string that strconv.ParseBool reads. No bytes, an empty object and null are no override; so is null as
// the key's value. It also returns the JSON of everything at the top level, by key.
//
// Everything else is an ErrUnreadable that names the field: a document that does not parse or is no object, another string,
// another JSON type, and, stricter than the operators, a key that stands there twice, because which of the two counts would
// be a guess.
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
	// The decoder has checked the syntax; what is left is which type it is.
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

// members are the top-level values of a JSON or YAML object. As in the operators, a brace makes it JSON.
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
	decoder := json.NewDecoder(bytes.NewReader(raw))
	switch opening, err := decoder.Token(); {
	case err != nil:
		return nil, err
	case opening == nil:
		return nil, nil
	case opening != json.Delim('{'):
		return nil, errors.New("not an object")
	}
	values := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a key", token)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("the key %q stands there twice", key)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		values[key] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return values, nil
}
