// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

// Domain is the prefix of the annotations and field owners of sno.
const Domain = "sno.solonode.github.io"

// OptOutAnnotation lists the modules that release the object and do not patch it, comma-separated; "all" and "true" are
// all.
const OptOutAnnotation = Domain + "/opt-out"

// ErrReplacedAnnotation is returned for a ReplacedAnnotation that cannot be decoded, or that is no longer the module's.
var ErrReplacedAnnotation = errors.New("unusable annotation of replaced values")

// FieldOwner returns the field owner of a module. It must never change: that would orphan fields.
func FieldOwner(module string) string { return Domain + "/" + module }

// ReleasedManager returns the manager of values that a release writes instead of those that no longer fit the topology.
func ReleasedManager(module string) string { return FieldOwner(module) + "-released" }

// ReplacedAnnotation returns the key of the annotation with the values that a module has replaced.
func ReplacedAnnotation(module string) string { return Domain + "/" + module + "-replaced" }

// OptsOut reports whether the OptOutAnnotation of an object names the module. It does not count if it was written
// through a subresource only: whoever may write just the status could otherwise have the module change the spec. Who
// may write the object itself could make the module's change by hand.
func OptsOut(object metav1.Object, module string) bool {
	for name := range strings.SplitSeq(object.GetAnnotations()[OptOutAnnotation], ",") {
		switch strings.TrimSpace(name) {
		case "all", "true", module:
			foreign, err := ownership.OnlyBySubresource(object, annotationPath(OptOutAnnotation), "")
			return err != nil || !foreign || ownership.IsCustom(object)
		}
	}
	return false
}

func annotationPath(key string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", key)
}

// Replaced is a replaced value of a field such as ".spec.replicas", and the manager that owned it.
type Replaced struct {
	Field   string          `json:"field"`
	Manager string          `json:"manager"`
	Value   json.RawMessage `json:"value"`
}

// ReadReplaced decodes the ReplacedAnnotation of an object if the module itself has applied it: a value that another
// client changes leaves the module's set (U-SSA-1). One that was written through a subresource is ignored, like none.
// Any other is an ErrReplacedAnnotation: it may hold the only copy of a value, so do not overwrite it.
func ReadReplaced(object metav1.Object, module string) ([]Replaced, error) {
	key := ReplacedAnnotation(module)
	text, ok := object.GetAnnotations()[key]
	if !ok || len(object.GetManagedFields()) == 0 {
		return nil, nil
	}
	path := annotationPath(key)
	own, err := ownership.Applied(object, FieldOwner(module), "")
	if err != nil {
		return nil, err
	}
	foreign, err := ownership.OnlyBySubresource(object, path, FieldOwner(module))
	if err != nil {
		return nil, err
	}
	// The status of a custom resource takes the owner, not the value.
	switch {
	case own.Has(path), foreign && ownership.IsCustom(object):
	case foreign:
		return nil, nil
	default:
		managers, err := ownership.ManagersAt(object, path)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: metadata.annotations[%s] was written by %s, so its values are not restored; note those that you need and remove it",
			ErrReplacedAnnotation, key, Quoted(managers))
	}
	var replaced []Replaced
	if err := json.Unmarshal([]byte(text), &replaced); err != nil {
		return nil, fmt.Errorf("%w: metadata.annotations[%s]: %w; note the values that you need and remove it", ErrReplacedAnnotation, key, err)
	}
	for i, r := range replaced {
		if !strings.HasPrefix(r.Field, ".") || r.Manager == "" || len(r.Value) == 0 {
			return nil, fmt.Errorf("%w: metadata.annotations[%s]: entry %d lacks a field, a manager or a value; note the values that you need and remove it",
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
