package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Domain is the prefix of every annotation and field owner that sno writes.
const Domain = "sno.solonode.github.io"

// OptOutAnnotation is the annotation by which a person keeps sno away from one object. Its value is a comma-separated list
// of module names, or "all" ("true" means the same). Modules that find their name there give back what they own on that object
// and write nothing.
const OptOutAnnotation = Domain + "/opt-out"

// ErrReplacedAnnotation is returned for a replaced-values annotation that is not what sno wrote.
var ErrReplacedAnnotation = errors.New("unreadable annotation of replaced values")

// FieldOwner is the server-side apply field owner of a module. It never changes: renaming it would orphan fields.
func FieldOwner(module string) string { return Domain + "/" + module }

// ReleasedManager is the field manager of a value that a module left behind when it let go, where the value that was there before no longer fits.
// It is not the module's own: letting go again does not remove it.
func ReleasedManager(module string) string { return FieldOwner(module) + "-released" }

// ReplacedAnnotation is the key of the annotation in which a module remembers the values that it took over by force, so
// that releasing the module can put them back.
func ReplacedAnnotation(module string) string { return Domain + "/" + module + "-replaced" }

// OptsOut reports whether the annotations of an object keep the module away from it.
func OptsOut(annotations map[string]string, module string) bool {
	value, ok := annotations[OptOutAnnotation]
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(name) {
		case "all", "true", module:
			return true
		}
	}
	return false
}

// Replaced is one value that a module took over by force.
type Replaced struct {
	// Field is the path as the API server writes it in a conflict, for example ".spec.replicas".
	Field string `json:"field"`
	// Manager is the field manager that owned it.
	Manager string `json:"manager"`
	// Value is what it was, as JSON.
	Value json.RawMessage `json:"value"`
}

// ReadReplaced reads the values that a module remembered on an object. No annotation is no values. An annotation that
// somebody damaged is an ErrReplacedAnnotation: it is never overwritten, since it may be all that is left of a person's value.
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

// WriteReplaced is the value of the annotation for the given entries: the same entries give the same bytes.
func WriteReplaced(replaced []Replaced) (string, error) {
	text, err := json.Marshal(replaced)
	if err != nil {
		return "", fmt.Errorf("encoding replaced values: %w", err)
	}
	return string(text), nil
}
