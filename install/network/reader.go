// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/solonode/sno/render/inputs"
)

// reader collects errors of a document, and the lines of its fields.
type reader struct {
	file   string
	lines  map[string]int
	faults inputs.Faults
}

type fields map[string]func(at string, n *yaml.Node)

func (r *reader) fault(kind error, at, advice, format string, args ...any) {
	line := 0
	for path := at; line == 0 && path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		line = r.lines[path]
	}
	r.faults = append(r.faults, inputs.Fault{
		File: r.file, Line: line, Field: at, Problem: fmt.Sprintf(format, args...), Advice: advice, Kind: kind,
	})
}

var lineInError = regexp.MustCompile(`line (\d+): `)

func (r *reader) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		r.fault(inputs.ErrSyntax, "", "describe the interfaces", "the file is empty")
		return nil
	}
	if err == nil {
		if err = decoder.Decode(&second); errors.Is(err, io.EOF) {
			return first.Content[0]
		}
	}
	fault := inputs.Fault{File: r.file, Line: second.Line, Problem: "there is a second document", Advice: "remove it", Kind: inputs.ErrSyntax}
	if err != nil {
		fault.Problem, fault.Advice = strings.TrimPrefix(err.Error(), "yaml: "), "write YAML"
		if match := lineInError.FindStringSubmatch(fault.Problem); match != nil {
			fault.Line, _ = strconv.Atoi(match[1]) // it is digits
			fault.Problem = strings.Replace(fault.Problem, match[0], "", 1)
		}
	}
	r.faults = append(r.faults, fault)
	return nil
}

// target follows an alias, and returns nil for null, which means a missing field.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	return n
}

func (r *reader) mapping(at string, n *yaml.Node, known fields) {
	if n = target(n); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(inputs.ErrSyntax, at, "write "+strings.Join(slices.Sorted(maps.Keys(known)), ", ")+" below it", "not a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		path := strings.TrimPrefix(at+"."+key.Value, ".")
		r.lines[path] = key.Line
		read := known[key.Value]
		switch {
		case seen[key.Value]:
			r.fault(inputs.ErrDuplicate, path, "keep one", "duplicate field")
		case read == nil:
			r.fault(inputs.ErrUnknownField, path, "remove it; supported fields are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "),
				"unknown or unsupported field")
		case target(n.Content[i+1]) != nil:
			read(path, target(n.Content[i+1]))
		}
		seen[key.Value] = true
	}
}

func (r *reader) list(at string, n *yaml.Node, item func(at string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fault(inputs.ErrSyntax, at, "begin each item with -", "not a list")
		return
	}
	for i, child := range n.Content {
		path := fmt.Sprintf("%s[%d]", at, i)
		r.lines[path] = child.Line
		if child = target(child); child == nil {
			r.fault(inputs.ErrMissing, path, "remove it", "the item is empty")
			continue
		}
		item(path, child)
	}
}

func (r *reader) text(value *string) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.fault(inputs.ErrSyntax, at, "write one value", "not a single value")
			return
		}
		*value = n.Value
	}
}

func (r *reader) boolean(value *bool) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		switch strings.ToLower(n.Value) {
		// NMState reads these words in quotes too.
		case "true", "yes", "on", "y", "1":
			*value = true
		case "false", "no", "off", "n", "0":
			*value = false
		default:
			r.fault(inputs.ErrInvalid, at, "write true or false", "%q is neither true nor false", n.Value)
		}
	}
}

func (r *reader) number(value *int, least, most int) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		number, err := strconv.Atoi(n.Value)
		if err != nil || number < least || number > most {
			r.fault(inputs.ErrInvalid, at, fmt.Sprintf("write a number from %d to %d", least, most), "invalid number %q", n.Value)
			return
		}
		*value = number
	}
}

func (r *reader) optionalNumber(value **int, least, most int) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		before, number := len(r.faults), 0
		if r.number(&number, least, most)(at, n); len(r.faults) == before {
			*value = &number
		}
	}
}

func (r *reader) oneOf(value *string, values ...string) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		if !slices.Contains(values, n.Value) {
			r.fault(inputs.ErrInvalid, at, "use one of "+strings.Join(values, ", "), "unknown value %q", n.Value)
			return
		}
		*value = n.Value
	}
}

// deviceName returns a reader for the name of an interface that the kernel accepts.
func (r *reader) deviceName(value *string) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		if n.Value == "" || len(n.Value) > 15 || n.Value == "." || n.Value == ".." || !plainName.MatchString(n.Value) {
			r.fault(inputs.ErrInvalid, at, "write at most 15 letters, digits, dots, dashes and underscores", "%q is not a name of an interface", n.Value)
			return
		}
		*value = n.Value
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (r *reader) hardware(value *string) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		address, err := net.ParseMAC(n.Value)
		if err != nil || len(address) != 6 || address[0]&1 != 0 || bytes.Equal(address, make([]byte, 6)) {
			r.fault(inputs.ErrInvalid, at, "write an address such as 52:54:00:12:34:56", "%q is not a hardware address of a machine", n.Value)
			return
		}
		*value = strings.ToUpper(address.String())
	}
}

func (r *reader) addr(value *netip.Addr) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		address, err := netip.ParseAddr(n.Value)
		if err != nil || address.Zone() != "" || address.Is4In6() || address.IsUnspecified() || address.IsMulticast() {
			r.fault(inputs.ErrInvalid, at, "write an address such as 192.0.2.7 or 2001:db8::7", "%q is not an address of a machine", n.Value)
			return
		}
		*value = address
	}
}
