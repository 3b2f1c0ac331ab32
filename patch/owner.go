// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Domain is the prefix of the annotations and field owners of sno.
const Domain = "sno.solonode.github.io"

// OptOutAnnotation lists the modules that release the object and do not patch it, comma-separated; "all" and "true" are
// all.
const OptOutAnnotation = Domain + "/opt-out"

// ErrReplacedAnnotation is returned for a ReplacedAnnotation that cannot be decoded.
var ErrReplacedAnnotation = errors.New("unreadable annotation of replaced values")

// FieldOwner returns the field owner of a module. It must never change: that would orphan fields.
func FieldOwner(module string) string { return Domain + "/" + module }

// ReleasedManager returns the manager of values that a release writes instead of those that no longer fit the topology.
func ReleasedManager(module string) string { return FieldOwner(module) + "-released" }

// ReplacedAnnotation returns the key of the annotation with the values that a module has replaced.
func ReplacedAnnotation(module string) string { return Domain + "/" + module + "-replaced" }

// OptsOut reports whether the OptOutAnnotation of an object names the module.
func OptsOut(annotations map[string]string, module string) bool {
	for name := range strings.SplitSeq(annotations[OptOutAnnotation], ",") {
		switch strings.TrimSpace(name) {
		case "all", "true", module:
			return true
		}
	}
	return false
}

// Replaced is a replaced value of a field such as ".spec.replicas", and the manager that owned it.
type Replaced struct {
	Field   string          `json:"field"`
	Manager string          `json:"manager"`
	Value   json.RawMessage `json:"value"`
}

// ReadReplaced decodes the ReplacedAnnotation. After an error it may hold the only copy of a value: do not overwrite
// it.
func ReadReplaced(annotations map[string]string, module string) ([]Replaced, error) {
	key := ReplacedAnnotation(module)
	text, ok := annotations[key]
	if !ok {
		return nil, nil
	}
	var replaced []Replaced
	if err := json.Unmarshal([]byte(text), &replaced); err != nil {
		return nil, fmt.Errorf("%w: metadata.annotations[%s]: %w; repair it or remove it by hand", ErrReplacedAnnotation, key, err)
	}
	for i, r := range replaced {
		if !strings.HasPrefix(r.Field, ".") || r.Manager == "" || len(r.Value) == 0 {
			return nil, fmt.Errorf("%w: metadata.annotations[%s]: entry %d lacks a field, a manager or a value; repair it or remove it by hand",
				ErrReplacedAnnotation, key, i)
		}
	}
	return replaced, nil
}

// WriteReplaced encodes the ReplacedAnnotation. Equal entries give equal bytes.
func WriteReplaced(replaced []Replaced) (string, error) {
	text, err := json.Marshal(replaced)
	if err != nil {
		return "", fmt.Errorf("encoding replaced values: %w", err)
	}
	return string(text), nil
}
