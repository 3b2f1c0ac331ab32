package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Domain is the prefix of every annotation and field owner of sno.
const Domain = "sno.solonode.github.io"

// OptOutAnnotation lists the modules, comma-separated, that release the object and do not patch it; "all" and "true" mean every module.
const OptOutAnnotation = Domain + "/opt-out"

// ErrReplacedAnnotation is returned for an annotation of replaced values that cannot be decoded.
var ErrReplacedAnnotation = errors.New("unreadable annotation of replaced values")

// FieldOwner returns the server-side apply field owner of a module. It never changes: renaming it would orphan fields.
func FieldOwner(module string) string { return Domain + "/" + module }

// ReleasedManager returns the field manager of a value that a release leaves in the place of one that no longer fits the topology.
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

// Replaced is one value that a module replaced: of a field such as ".spec.replicas", by the manager that owned it.
type Replaced struct {
	Field   string          `json:"field"`
	Manager string          `json:"manager"`
	Value   json.RawMessage `json:"value"`
}

// ReadReplaced decodes the ReplacedAnnotation of a module. The error is an ErrReplacedAnnotation; such an annotation must not be
// overwritten, since it may hold the only copy of a person's value.
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

// WriteReplaced encodes the value of the ReplacedAnnotation: the same entries give the same bytes.
func WriteReplaced(replaced []Replaced) (string, error) {
	text, err := json.Marshal(replaced)
	if err != nil {
		return "", fmt.Errorf("encoding replaced values: %w", err)
	}
	return string(text), nil
}
