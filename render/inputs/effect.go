// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

// Effect is what is done with a field.
type Effect string

const (
	// Applied fields affect the static pods in both profiles.
	Applied Effect = "applied"
	// AppliedOpenShift fields affect the static pods in profile openshift. In profile kubernetes they are warnings.
	AppliedOpenShift Effect = "applied (openshift)"
	// ExportedOnly fields do not affect the static pods.
	ExportedOnly Effect = "exported"
	// Ignored fields need an operator. A set field is a warning; it is exported.
	Ignored Effect = "ignored"
	// Refused fields must not be set.
	Refused Effect = "refused"
)

// Field is what is done with a field of a resource of config.openshift.io.
type Field struct {
	Resource string
	// Path has [*] for the items of a list. An entry covers all fields below it that have no entry of their own.
	Path   string
	Effect Effect
	Reason string
	// Values are the accepted values, in addition to the empty one; none accepts any.
	Values        []string
	RefusedValues []RefusedValue
}

// RefusedValue is a value of the API that is refused.
type RefusedValue struct{ Value, Reason string }

// maxCell is the limit of a cell with several paths.
const maxCell = 115

// WriteMarkdown writes the fields as Markdown tables. Consecutive fields of one effect and reason share a row.
func WriteMarkdown(w io.Writer, fields []Field) error {
	var text strings.Builder
	resource := ""
	for len(fields) > 0 {
		row := fields[0]
		if row.Resource != resource {
			if resource != "" {
				text.WriteString("\n")
			}
			resource = row.Resource
			fmt.Fprintf(&text, "## %s\n\n| field | effect | values | why |\n|---|---|---|---|\n", resource)
		}
		paths := "`" + row.Path + "`"
		for fields = fields[1:]; len(fields) > 0 && row.sharesRow(fields[0]); fields = fields[1:] {
			longer := paths + ", `" + fields[0].Path + "`"
			if len(longer) > maxCell {
				break
			}
			paths = longer
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", paths, row.Effect, strings.Join(row.Values, ", "), row.Reason)
		for _, refused := range row.RefusedValues {
			fmt.Fprintf(&text, "| | %s | %s | %s |\n", Refused, refused.Value, refused.Reason)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (f Field) sharesRow(other Field) bool {
	return f.Resource == other.Resource && f.Effect == other.Effect && f.Reason == other.Reason &&
		len(f.Values)+len(other.Values)+len(f.RefusedValues)+len(other.RefusedValues) == 0
}

type setField struct {
	path  string
	value any
}

// empty reports whether a JSON value is empty: null, "", 0, false, or composed of such values.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case float64:
		return value == 0
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, item := range value {
			if !empty(item) {
				return false
			}
		}
		return true
	}
	return false
}

var (
	index         = regexp.MustCompile(`\[\d+\]`)
	trailingIndex = regexp.MustCompile(`\[\d+\]$`)
)

func fieldFor(resource, path string) (Field, bool) {
	path = index.ReplaceAllString(path, "[*]")
	best, found := Field{}, false
	for _, row := range Fields {
		if row.Resource != resource || (found && len(row.Path) <= len(best.Path)) {
			continue
		}
		if rest, ok := strings.CutPrefix(path, row.Path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			best, found = row, true
		}
	}
	return best, found
}

func leaves(at string, value any) []setField {
	if empty(value) {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		var found []setField
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, leaves(strings.TrimPrefix(at+"."+key, "."), value[key])...)
		}
		return found
	case []any:
		var found []setField
		for i, item := range value {
			found = append(found, leaves(fmt.Sprintf("%s[%d]", at, i), item)...)
		}
		return found
	}
	return []setField{{at, value}}
}

// checkFields validates the input with Fields. It implements R-REN-2.
func (r *reader) checkFields() {
	for _, kind := range required {
		s := r.configSource(kind)
		if s == nil {
			continue
		}
		var content map[string]any
		if json.Unmarshal(s.JSON, &content) != nil {
			continue // a fault already
		}
		reported := map[string]bool{}
		for _, part := range []string{"spec", "status"} {
			for _, leaf := range leaves(part, content[part]) {
				row, ok := fieldFor(kind, leaf.path)
				if !ok {
					continue // an unknown field, which is a fault already
				}
				r.checkValue(s, row, leaf)
				if reported[row.Path] {
					continue // once per entry
				}
				reported[row.Path] = true
				at := fieldPath(row.Path, leaf.path)
				switch row.Effect {
				case Refused:
					r.report(s, field.Forbidden(document.Path("%s", at), row.Reason+"; remove the field"))
				case Ignored:
					r.warn(s, at, "without effect: %s", row.Reason)
				case AppliedOpenShift:
					r.cluster.openShiftOnly = append(r.cluster.openShiftOnly, s.Faults(ignored(at, "without effect in profile kubernetes: %s", row.Reason))...)
				case Applied, ExportedOnly:
				}
			}
		}
	}
}

// fieldPath returns the part of a path that an entry names, without a trailing index.
func fieldPath(row, path string) string {
	rowSegments, segments := strings.Split(row, "."), strings.Split(path, ".")
	return trailingIndex.ReplaceAllString(strings.Join(segments[:len(rowSegments)], "."), "")
}

func (r *reader) checkValue(s *document.Document, row Field, leaf setField) {
	value, isString := leaf.value.(string)
	if !isString || (len(row.Values) == 0 && len(row.RefusedValues) == 0) {
		return
	}
	for _, refused := range row.RefusedValues {
		if value == refused.Value {
			r.report(s, field.Forbidden(document.Path("%s", leaf.path), fmt.Sprintf("%q: %s; accepted: %s", value, refused.Reason, strings.Join(row.Values, ", "))))
			return
		}
	}
	if !slices.Contains(row.Values, value) {
		r.report(s, field.NotSupported(document.Path("%s", leaf.path), value, row.Values))
	}
}
