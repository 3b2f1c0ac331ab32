// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

type source struct {
	file string
	// offset is the number of lines before the document.
	offset int
	node   *yaml.Node
	json   []byte
	object string
}

var (
	separator   = regexp.MustCompile(`^---(\s|$)`)
	lineInError = regexp.MustCompile(`line (\d+): `)
)

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

// parse returns the objects of a file, with a List replaced by its items, and the faults of syntax.
func parse(file string, content []byte) (sources []*source, faults Faults) {
	if strings.HasSuffix(file, ".json") {
		content = expandTabs(content)
	}
	documents, offsets := split(content)
	for i, document := range documents {
		found, wrong := parseDocument(file, document, offsets[i])
		sources, faults = append(sources, found...), append(faults, wrong...)
	}
	return sources, faults
}

func parseDocument(file string, document []byte, offset int) (sources []*source, faults Faults) {
	syntax := func(line int, problem, advice string) {
		faults = append(faults, Fault{File: file, Line: line, Problem: problem, Advice: advice, Kind: ErrSyntax})
	}
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil {
		line, text := yamlError(err.Error(), offset)
		if line == 0 {
			line = offset + 1
		}
		syntax(line, text, "fix the YAML")
		return nil, faults
	}
	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		line := offset + 1
		if err == nil && len(next.Content) > 0 {
			line = offset + next.Content[0].Line
		} else if err != nil {
			line, _ = yamlError(err.Error(), offset)
		}
		syntax(line, "more after the end of the document", "separate documents by a line of ---")
		return nil, faults
	}

	converted, err := sigsyaml.YAMLToJSONStrict(document)
	if err != nil {
		for text := range strings.Lines(err.Error()) {
			if line, problem := yamlError(text, offset); line > 0 {
				faults = append(faults, Fault{File: file, Line: line, Problem: problem, Kind: ErrDuplicate,
					Advice: "a field can be set once"})
			}
		}
		if len(faults) == 0 {
			syntax(offset+1, strings.TrimSpace(err.Error()), "fix the YAML")
			return nil, faults
		}
		// Check the rest of the document too, so that all faults are reported at once.
		if converted, err = sigsyaml.YAMLToJSON(document); err != nil {
			return nil, faults
		}
	}

	node := root.Content[0]
	whole := &source{file: file, offset: offset, node: node, json: converted}
	if node.Kind != yaml.MappingNode {
		syntax(offset+node.Line, "not an object", "a document is a mapping with apiVersion and kind")
		return nil, faults
	}
	items := child(node, "items")
	if kind := child(node, "kind"); items == nil || kind == nil || kind.Value != "List" || items.Kind != yaml.SequenceNode {
		return []*source{whole}, faults
	}
	parts, err := listItems(converted)
	if err != nil || len(parts) != len(items.Content) {
		syntax(offset+items.Line, fmt.Sprintf("not a list of objects: %v", err), "")
		return nil, faults
	}
	for i, item := range items.Content {
		if item.Kind != yaml.MappingNode {
			syntax(offset+item.Line, "not an object", "an item is a mapping with apiVersion and kind")
			continue
		}
		sources = append(sources, &source{file: file, offset: offset, node: item, json: parts[i]})
	}
	return sources, faults
}

// yamlError returns the line in the file and the text of a parser's message; the line is 0 if it names none.
func yamlError(text string, offset int) (line int, problem string) {
	text = strings.TrimSpace(text)
	found := lineInError.FindStringSubmatchIndex(text)
	if found == nil {
		return 0, strings.TrimPrefix(text, "yaml: ")
	}
	number, err := strconv.Atoi(text[found[2]:found[3]])
	if err != nil {
		return 0, text
	}
	problem = text[found[1]:]
	for _, message := range countedFromZero {
		if strings.HasPrefix(problem, "did not find expected "+message) {
			number++
		}
	}
	return number + offset, problem
}

// countedFromZero are the messages in which the YAML library's parser counts lines from 0; its scanner counts from 1.
var countedFromZero = []string{"',' or ']'", "',' or '}'", "key", "'-' indicator", "<document start>", "node content"}

func child(node *yaml.Node, name string) *yaml.Node {
	if key := keyNode(node, name); key >= 0 {
		return node.Content[key+1]
	}
	return nil
}

func keyNode(node *yaml.Node, name string) int {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// line returns the line of a field, or of its nearest parent. Keys may contain dots: the longest match is used.
func (s *source) line(path string) int {
	if s == nil || s.node == nil {
		return 0
	}
	node, line := s.node, s.node.Line
	for path != "" {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		switch node.Kind {
		case yaml.MappingNode:
			best := -1
			for i := 0; i+1 < len(node.Content); i += 2 {
				rest, ok := strings.CutPrefix(path, node.Content[i].Value)
				if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') &&
					(best < 0 || len(node.Content[i].Value) > len(node.Content[best].Value)) {
					best = i
				}
			}
			if best < 0 {
				return s.offset + line
			}
			line = node.Content[best].Line
			path = strings.TrimPrefix(path[len(node.Content[best].Value):], ".")
			node = node.Content[best+1]
		case yaml.SequenceNode:
			number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
			index, err := strconv.Atoi(number)
			if err != nil || index >= len(node.Content) {
				return s.offset + line
			}
			node, path = node.Content[index], strings.TrimPrefix(rest, ".")
			line = node.Line
		case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
			return s.offset + line
		}
	}
	return s.offset + line
}

func listItems(list []byte) ([][]byte, error) {
	var content struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(list, &content); err != nil {
		return nil, err
	}
	items := make([][]byte, len(content.Items))
	for i := range content.Items {
		items[i] = content.Items[i]
	}
	return items, nil
}

// dataField returns the field of a Secret that has the key: stringData takes precedence over data.
func (s *source) dataField(key string) string {
	if clear := child(s.node, "stringData"); clear != nil && keyNode(clear, key) >= 0 {
		return "stringData." + key
	}
	return "data." + key
}
