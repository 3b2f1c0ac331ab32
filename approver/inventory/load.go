// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// MaxBytes limits the size of a file.
const MaxBytes = 4 << 20

// Load parses a file strictly: unknown and duplicate fields, aliases and a second document are errors, as is all that
// New refuses.
func Load(text []byte) (*Inventory, error) {
	f := &file{builder: newBuilder(), at: map[string]*yaml.Node{}}
	if root := f.parse(text); root != nil {
		f.mapping("", root, fields{
			"version": func(path string, at *yaml.Node) {
				if at.ShortTag() != "!!int" || at.Value != "1" {
					f.fault(path, "the version must be 1")
				}
			},
			"nodes": func(path string, at *yaml.Node) { f.list(path, at, f.node) },
		}, "nodes", "version")
	}
	for i, fault := range f.faults {
		if at := f.at[fault.Field]; at != nil {
			f.faults[i].Line, f.faults[i].Column = at.Line, at.Column
		}
	}
	slices.SortStableFunc(f.faults, func(a, b Error) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return f.result()
}

// file parses YAML; at is the position of each field.
type file struct {
	*builder
	at map[string]*yaml.Node
}

type fields map[string]func(path string, value *yaml.Node)

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

func (f *file) parse(text []byte) *yaml.Node {
	if len(text) > MaxBytes {
		f.fault("", "the file has %d bytes, at most %d are allowed", len(text), MaxBytes)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		f.fault("", "the file is empty; it needs version and nodes")
		return nil
	case err != nil:
		problem := err.Error()
		if found := yamlLine.FindStringSubmatch(problem); found != nil {
			line, _ := strconv.Atoi(found[1])
			f.at[""], problem = &yaml.Node{Line: line, Column: 1}, found[2]
		}
		f.fault("", "not YAML: %s", problem)
		return nil
	}
	if !errors.Is(decoder.Decode(&second), io.EOF) {
		f.at[""] = &second
		f.fault("", "there is a second document; only one is allowed")
		return nil
	}
	return document.Content[0]
}

// mapping reads a mapping that has no other fields.
func (f *file) mapping(path string, at *yaml.Node, known fields, required ...string) {
	f.at[path] = at
	if at.Kind != yaml.MappingNode {
		f.fault(path, "must be a mapping")
		return
	}
	inner := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	seen := map[string]bool{}
	for i := 0; i+1 < len(at.Content); i += 2 {
		key, value := at.Content[i], at.Content[i+1]
		field, read := inner(key.Value), known[key.Value]
		f.at[field] = key
		switch {
		case key.Kind != yaml.ScalarNode || read == nil:
			f.fault(field, "unknown field")
		case seen[key.Value]:
			f.fault(field, "duplicate field")
		default:
			f.at[field] = value
			read(field, value)
		}
		seen[key.Value] = true
	}
	for _, name := range required {
		if !seen[name] {
			f.at[inner(name)] = at
			f.fault(inner(name), "the field is missing")
		}
	}
}

func (f *file) list(path string, at *yaml.Node, read func(path string, element *yaml.Node)) {
	switch {
	case at.Kind != yaml.SequenceNode:
		f.fault(path, "must be a list")
		return
	case len(at.Content) == 0:
		f.fault(path, "the list is empty")
	}
	for i, element := range at.Content {
		inner := fmt.Sprintf("%s[%d]", path, i)
		f.at[inner] = element
		read(inner, element)
	}
}

func (f *file) text(path string, at *yaml.Node, tags ...string) (string, bool) {
	if at.Kind != yaml.ScalarNode || !slices.Contains(append(tags, "!!str"), at.ShortTag()) {
		f.fault(path, "must be a string; quote a value that YAML reads as another type")
		return "", false
	}
	return at.Value, true
}

func (f *file) time(path string, at *yaml.Node) time.Time {
	value, ok := f.text(path, at, "!!timestamp")
	moment, err := time.Parse(time.RFC3339, value)
	if ok && err != nil {
		f.fault(path, "%q is not a time like 2026-01-31T08:00:00Z", value)
	}
	return moment
}

func (f *file) node(path string, at *yaml.Node) {
	node, window := Node{}, &Window{}
	var names, addresses []string // their fields
	f.mapping(path, at, fields{
		"name": func(path string, at *yaml.Node) { node.Name, _ = f.text(path, at) },
		"addresses": func(path string, at *yaml.Node) {
			f.list(path, at, func(path string, at *yaml.Node) {
				value, ok := f.text(path, at)
				if ip, err := netip.ParseAddr(value); err == nil {
					node.Addresses, addresses = append(node.Addresses, ip), append(addresses, path)
				} else if ok {
					node.DNSNames, names = append(node.DNSNames, value), append(names, path)
				}
			})
		},
		"window": func(path string, at *yaml.Node) {
			before := len(f.faults)
			f.mapping(path, at, fields{
				"notBefore": func(path string, at *yaml.Node) { window.NotBefore = f.time(path, at) },
				"notAfter":  func(path string, at *yaml.Node) { window.NotAfter = f.time(path, at) },
			}, "notAfter", "notBefore")
			if len(f.faults) == before {
				node.Window = window
			}
		},
		"count": func(_ string, at *yaml.Node) {
			count, err := strconv.Atoi(at.Value)
			if node.Count = count; at.ShortTag() != "!!int" || err != nil || count == 0 {
				node.Count = -1
			}
		},
		"rejoin": func(path string, at *yaml.Node) {
			if node.Rejoin = at.Value == "true"; at.ShortTag() != "!!bool" || !node.Rejoin && at.Value != "false" {
				f.fault(path, "must be true or false")
			}
		},
	}, "name")
	if at.Kind == yaml.MappingNode {
		f.add(node, path, names, addresses)
	}
}
