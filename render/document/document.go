// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"
)

// Document is a mapping of a file.
type Document struct {
	File string
	// Object names the document in faults; the reader may set it.
	Object string
	// JSON has the content, as the API server would read it.
	JSON []byte

	// offset is the number of lines before the document.
	offset int
	node   *yaml.Node
}

// One returns the document of a file that has exactly one.
func One(file string, content []byte) (*Document, Faults) {
	documents, faults := Parse(file, content)
	switch {
	case len(faults) > 0:
		return nil, faults
	case len(documents) == 0:
		return nil, Faults{{File: file, Problem: Whole(field.ErrorTypeRequired, "the file is empty")}}
	case len(documents) > 1:
		second := documents[1]
		return nil, Faults{{File: file, Line: second.Line(""), Problem: Whole(field.ErrorTypeTooMany, "there is a second document; remove it")}}
	}
	return documents[0], nil
}

// Parse returns the documents of a file, with a List replaced by its items, and the faults of syntax.
func Parse(file string, content []byte) (documents []*Document, faults Faults) {
	if strings.HasSuffix(file, ".json") {
		content = expandTabs(content)
	}
	texts, offsets := split(content)
	for i, text := range texts {
		found, wrong := parse(file, text, offsets[i])
		documents, faults = append(documents, found...), append(faults, wrong...)
	}
	return documents, faults
}

var separator = regexp.MustCompile(`^---(\s|$)`)

// split returns the documents that have content, and the number of lines before each.
func split(content []byte) (documents [][]byte, offsets []int) {
	lines := bytes.SplitAfter(content, []byte("\n"))
	start := 0
	flush := func(end int) {
		text := bytes.Join(lines[start:end], nil)
		if separator.Match(text) {
			text = append([]byte("   "), text[3:]...)
		}
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
				documents, offsets = append(documents, text), append(offsets, start)
				return
			}
		}
	}
	for i, line := range lines {
		if i > start && separator.Match(line) {
			flush(i)
			start = i
		}
	}
	flush(len(lines))
	return documents, offsets
}

// expandTabs replaces tabs that indent lines of JSON, which YAML does not allow.
func expandTabs(content []byte) []byte {
	var out []byte
	for line := range bytes.Lines(content) {
		rest := bytes.TrimLeft(line, " \t")
		out = append(out, bytes.Repeat([]byte(" "), len(line)-len(rest))...)
		out = append(out, rest...)
	}
	return out
}

func parse(file string, text []byte, offset int) (documents []*Document, faults Faults) {
	syntax := func(line int, detail string) {
		faults = append(faults, Fault{File: file, Line: line, Problem: Whole(field.ErrorTypeTypeInvalid, detail)})
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root, next yaml.Node
	if err := decoder.Decode(&root); err != nil {
		line, problem := yamlError(err, offset)
		syntax(line, problem+"; fix the YAML")
		return nil, faults
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		line := offset + 1
		if err != nil {
			line, _ = yamlError(err, offset)
		}
		syntax(line, "more after the end of the document; separate documents by a line of ---")
		return nil, faults
	}
	converted, err := sigsyaml.YAMLToJSON(text)
	whole := &Document{File: file, JSON: converted, offset: offset, node: root.Content[0]}
	switch {
	case err != nil:
		line, problem := yamlError(err, offset)
		syntax(line, problem+"; fix the YAML")
		return nil, faults
	case whole.node.Kind != yaml.MappingNode:
		syntax(whole.Line(""), "not a mapping; write fields as NAME: VALUE")
		return nil, faults
	}
	// The rest is read too, so that all faults are reported at once.
	faults = whole.duplicates(nil, whole.node)
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	items := child(whole.node, "items")
	if json.Unmarshal(converted, &list) != nil || list.Kind != "List" || items == nil || len(list.Items) != len(items.Content) {
		return []*Document{whole}, faults
	}
	for i, item := range items.Content {
		if item.Kind != yaml.MappingNode {
			syntax(offset+item.Line, "not an object; an item is a mapping with apiVersion and kind")
			continue
		}
		documents = append(documents, &Document{File: file, JSON: list.Items[i], offset: offset, node: item})
	}
	return documents, faults
}

// duplicates finds fields that are set twice. It does not follow aliases, which may contain themselves.
func (d *Document) duplicates(at *field.Path, node *yaml.Node) (faults Faults) {
	seen := map[string]bool{}
	for i := 0; i < len(node.Content); i++ {
		below := at.Index(i)
		if node.Kind == yaml.MappingNode {
			key := node.Content[i]
			below = at.Child(key.Value)
			if seen[key.Value] {
				faults = append(faults, Fault{File: d.File, Line: d.offset + key.Line, Problem: &field.Error{
					Type: field.ErrorTypeDuplicate, Field: below.String(), BadValue: Omitted, Detail: "the field is set twice; remove one of them",
				}})
			}
			seen[key.Value] = true
			i++
		}
		faults = append(faults, d.duplicates(below, node.Content[i])...)
	}
	return faults
}

var lineInError = regexp.MustCompile(`line (\d+): `)

// countedFromZero are the messages in which the YAML library's parser counts lines from 0; its scanner counts from 1.
var countedFromZero = []string{"',' or ']'", "',' or '}'", "key", "'-' indicator", "<document start>", "node content"}

// yamlError returns the line in the file and the text of a parser's message.
func yamlError(err error, offset int) (line int, problem string) {
	text := strings.TrimSpace(err.Error())
	found := lineInError.FindStringSubmatchIndex(text)
	if found == nil {
		return offset + 1, strings.TrimPrefix(text, "yaml: ")
	}
	line, _ = strconv.Atoi(text[found[2]:found[3]]) // it is digits
	problem = text[found[1]:]
	if slices.ContainsFunc(countedFromZero, func(m string) bool { return strings.HasPrefix(problem, "did not find expected "+m) }) {
		line++
	}
	return line + offset, problem
}

func child(node *yaml.Node, name string) *yaml.Node {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

// Faults adds file, line and object to field errors.
func (d *Document) Faults(errs field.ErrorList) Faults {
	var faults Faults
	for _, err := range errs {
		faults = append(faults, Fault{File: d.File, Line: d.Line(err.Field), Object: d.Object, Problem: err})
	}
	return faults
}

// Has reports whether the document has a field.
func (d *Document) Has(path string) bool {
	_, _, rest := d.find(path)
	return rest == ""
}

// Empty reports whether a field is missing, null, "" or []. {} is not empty.
func (d *Document) Empty(path string) bool {
	_, node, rest := d.find(path)
	if node.Kind == yaml.ScalarNode {
		return rest != "" || node.Tag == "!!null" || node.Value == ""
	}
	return rest != "" || node.Kind == yaml.SequenceNode && len(node.Content) == 0
}

// NoFields reports whether the value of a field is {}.
func (d *Document) NoFields(path string) bool {
	_, node, rest := d.find(path)
	return rest == "" && node.Kind == yaml.MappingNode && len(node.Content) == 0
}

// Line returns the line of a field, or of the nearest field above it.
func (d *Document) Line(path string) int {
	line, _, _ := d.find(path)
	return d.offset + line
}

// find returns the line and the value of a field, or of the nearest one above it and the rest of the path. Keys may
// contain dots: the longest match is used.
func (d *Document) find(path string) (line int, node *yaml.Node, rest string) {
	node, line, rest = d.node, d.node.Line, path
	for rest != "" {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		next, below := (*yaml.Node)(nil), ""
		at := 0
		switch node.Kind {
		case yaml.MappingNode:
			longest := -1
			for i := 0; i+1 < len(node.Content); i += 2 {
				key := node.Content[i]
				after, ok := strings.CutPrefix(rest, key.Value)
				if ok && (after == "" || after[0] == '.' || after[0] == '[') && len(key.Value) > longest {
					longest, next, at, below = len(key.Value), node.Content[i+1], key.Line, after
				}
			}
		case yaml.SequenceNode:
			number, after, _ := strings.Cut(strings.TrimPrefix(rest, "["), "]")
			if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(node.Content) {
				next, at, below = node.Content[i], node.Content[i].Line, after
			}
		case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
		}
		if next == nil {
			return line, node, rest
		}
		node, line, rest = next, at, strings.TrimPrefix(below, ".")
	}
	return line, node, ""
}

// Place returns file and line of a field, for a fault elsewhere that refers to it.
func (d *Document) Place(path string) string { return fmt.Sprintf("%s:%d", d.File, d.Line(path)) }
