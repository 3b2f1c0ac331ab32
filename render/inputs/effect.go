package inputs

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Effect is what becomes of a field.
type Effect string

const (
	// Applied: it decides what is rendered, in both profiles.
	Applied Effect = "applied"
	// AppliedOpenShift: as Applied, in profile openshift. The plain kube-apiserver has nothing like it; there, a field that is
	// set is a warning.
	AppliedOpenShift Effect = "applied in profile openshift"
	// Kept: it is no business of the control plane. It is exported as it is, for whoever reads it.
	ExportedOnly Effect = "exported only"
	// Ignored: on a cluster with operators one of them would act on it. A field that is set is a warning. It is exported.
	Ignored Effect = "ignored, with a warning"
	// Refused: a field that is set is a fault.
	Refused Effect = "refused"
)

// Field is a row of the table of fields: what becomes of a field of a resource of config.openshift.io.
type Field struct {
	// Resource is the kind.
	Resource string
	// Path names the field, with [*] for the items of a list. A row covers all that is below it, but for rows of their own.
	Path   string
	Effect Effect
	Reason    string
	// Values are the values that are accepted, besides the empty one; none means any.
	Values []string
	// RefusedValues are values that are known and refused, and why.
	RefusedValues []RefusedValue
}

// RefusedValue is a value that the API has and a render refuses.
type RefusedValue struct{ Value, Reason string }

// WriteMarkdown writes the table of fields as Markdown: a section for every resource.
func WriteMarkdown(w io.Writer, fields []Field) error {
	var text strings.Builder
	resource := ""
	for _, field := range fields {
		if field.Resource != resource {
			if resource != "" {
				text.WriteString("\n")
			}
			resource = field.Resource
			fmt.Fprintf(&text, "## %s\n\n| field | effect | values | why |\n|---|---|---|---|\n", resource)
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", field.Path, field.Effect, strings.Join(field.Values, ", "), field.Reason)
		for _, refused := range field.RefusedValues {
			fmt.Fprintf(&text, "| | %s | %s | %s |\n", Refused, refused.Value, refused.Reason)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// set is a field of the input that has a value.
type setField struct {
	path  string
	value any
}

// empty reports whether a value of JSON says nothing: null, "", 0, false, and what has only such values.
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

// rowOf returns the row that covers a path.
func fieldFor(resource, path string) (Field, bool) {
	path = index.ReplaceAllString(path, "[*]")
	best, found := Field{}, false
	for _, field := range Fields {
		if field.Resource != resource || (found && len(field.Path) <= len(best.Path)) {
			continue
		}
		if rest, ok := strings.CutPrefix(path, field.Path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			best, found = field, true
		}
	}
	return best, found
}

// leaves returns the fields of the input that have a value and no fields of their own.
func leaves(at string, value any) []setField {
	if empty(value) {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		var found []setField
		for _, key := range sortedKeys(value) {
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

// checkFields holds the input against the table of fields. It implements R-REN-2.
func (r *reader) checkFields() {
	for _, kind := range required {
		s := r.configSource(kind)
		if s == nil {
			continue
		}
		var content map[string]any
		if json.Unmarshal(s.json, &content) != nil {
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
					continue // once for all that a row covers
				}
				reported[row.Path] = true
				field := fieldPath(row.Path, leaf.path)
				switch row.Effect {
				case Refused:
					r.addFault(s, ErrUnsupported, field, "refused: "+row.Reason, "remove the field")
				case Ignored:
					r.cluster.Warnings = append(r.cluster.Warnings, s.fault(ErrIgnored, field, "without effect: "+row.Reason, ""))
				case AppliedOpenShift:
					r.cluster.openShiftOnly = append(r.cluster.openShiftOnly,
						s.fault(ErrIgnored, field, "without effect in profile kubernetes: "+row.Reason, ""))
				case Applied, ExportedOnly:
				}
			}
		}
	}
}

// at returns the beginning of a path that a row names, or the list that it names the items of.
func fieldPath(row, path string) string {
	rowSegments, segments := strings.Split(row, "."), strings.Split(path, ".")
	return trailingIndex.ReplaceAllString(strings.Join(segments[:len(rowSegments)], "."), "")
}

func (r *reader) checkValue(s *source, row Field, leaf setField) {
	value, isString := leaf.value.(string)
	if !isString || (len(row.Values) == 0 && len(row.RefusedValues) == 0) {
		return
	}
	for _, refused := range row.RefusedValues {
		if value == refused.Value {
			r.addFault(s, ErrUnsupported, leaf.path, fmt.Sprintf("%q is refused: %s", value, refused.Reason),
				"accepted: "+strings.Join(row.Values, ", "))
			return
		}
	}
	if !slices.Contains(row.Values, value) {
		r.addFault(s, ErrInvalid, leaf.path, fmt.Sprintf("unknown value %q", value), "accepted: "+strings.Join(row.Values, ", "))
	}
}
