package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file. They are far beyond what one cluster needs.
const (
	// MaxBytes is how long it may be.
	MaxBytes = 4 << 20
	// MaxAddresses is how many addresses one node may have, MaxCount how many approvals.
	MaxAddresses = 64
	MaxCount     = 100
	// maxFaults is how many are told at once.
	maxFaults = 20
)

// ErrInvalid is returned for a file that is no inventory. The error has one Fault for everything that is wrong in it, as far as the
// first 20.
var ErrInvalid = errors.New("invalid inventory")

// Fault is one thing that is wrong in a file.
type Fault struct {
	// Line and Column are where, from 1; 0 where it is about the whole file.
	Line, Column int
	// Field is the path, such as nodes[2].window.notAfter; empty where it is about the whole file.
	Field string
	// Problem is what is wrong, and what would be right.
	Problem string
}

// Error is a line for a person, without the name of the file.
func (f Fault) Error() string {
	text := f.Problem
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, text)
	}
	return text
}

// Load reads a file. It is strict: unknown and repeated fields, aliases, a second document, and whatever two nodes have in common are
// faults, because a file that was meant otherwise than it is read lets the wrong machine in.
func Load(text []byte) (*Inventory, error) {
	l := &loader{owner: map[string]string{}, inventory: Inventory{nodes: map[string]*Node{}}}
	if root := l.parse(text); root != nil {
		l.file(root)
	}
	if len(l.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(l.faults[:min(len(l.faults), maxFaults)]...))
	}
	return &l.inventory, nil
}

type loader struct {
	inventory Inventory
	// owner is which node has an address or a name already.
	owner  map[string]string
	faults []error
}

func (l *loader) fault(at *yaml.Node, field, problem string, arguments ...any) {
	l.faults = append(l.faults, Fault{Line: at.Line, Column: at.Column, Field: field, Problem: fmt.Sprintf(problem, arguments...)})
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// parse is the file's only document; nil after a fault.
func (l *loader) parse(text []byte) *yaml.Node {
	if len(text) > MaxBytes {
		l.fault(&yaml.Node{}, "", "the file has %d bytes, at most %d are read", len(text), MaxBytes)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		l.fault(&yaml.Node{}, "", "the file is empty; it needs version and nodes")
		return nil
	case err != nil:
		at, problem := &yaml.Node{}, err.Error()
		if found := yamlLine.FindStringSubmatch(problem); found != nil {
			at.Line, _ = strconv.Atoi(found[1])
			at.Column, problem = 1, found[2]
		}
		l.fault(at, "", "not YAML: %s", problem)
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		l.fault(&second, "", "there is a second document; an inventory is one")
		return nil
	}
	return document.Content[0]
}

// field is what to do with the value of a field.
type field struct {
	required bool
	read     func(value *yaml.Node, path string)
}

// mapping reads a mapping with these fields and no others.
func (l *loader) mapping(at *yaml.Node, path string, fields map[string]field) {
	if at.Kind != yaml.MappingNode {
		l.fault(at, path, "this must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(at.Content); i += 2 {
		key, value := at.Content[i], at.Content[i+1]
		inner := strings.TrimPrefix(path+"."+key.Value, ".")
		switch known, ok := fields[key.Value]; {
		case key.Kind != yaml.ScalarNode || !ok:
			l.fault(key, inner, "there is no such field")
		case seen[key.Value]:
			l.fault(key, inner, "the field is there twice")
		default:
			known.read(value, inner)
		}
		seen[key.Value] = true
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name].required && !seen[name] {
			l.fault(at, strings.TrimPrefix(path+"."+name, "."), "the field is missing")
		}
	}
}

// list reads a list of at least one element.
func (l *loader) list(at *yaml.Node, path string, most int, read func(*yaml.Node, string)) {
	switch {
	case at.Kind != yaml.SequenceNode:
		l.fault(at, path, "this must be a list")
	case len(at.Content) == 0:
		l.fault(at, path, "the list is empty")
	case most > 0 && len(at.Content) > most:
		l.fault(at, path, "the list has %d elements, at most %d are allowed", len(at.Content), most)
	default:
		for i, element := range at.Content {
			read(element, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// text is a string, which may not be a number or the like without quotes.
func (l *loader) text(at *yaml.Node, path string, tags ...string) (string, bool) {
	if at.Kind != yaml.ScalarNode || !slices.Contains(append(tags, "!!str"), at.ShortTag()) {
		l.fault(at, path, "this must be a string; put it in quotes when it looks like something else")
		return "", false
	}
	return at.Value, true
}

func (l *loader) file(root *yaml.Node) {
	l.mapping(root, "", map[string]field{
		"version": {true, func(at *yaml.Node, path string) {
			if at.ShortTag() != "!!int" || at.Value != "1" {
				l.fault(at, path, "the version must be 1")
			}
		}},
		"nodes": {true, func(at *yaml.Node, path string) { l.list(at, path, 0, l.node) }},
	})
}

func (l *loader) node(at *yaml.Node, path string) {
	node := &Node{Count: 1}
	l.mapping(at, path, map[string]field{
		"name": {true, func(at *yaml.Node, path string) {
			if name, ok := l.text(at, path); ok && l.host(at, path, name) {
				node.Name = name
			}
		}},
		"addresses": {false, func(at *yaml.Node, path string) {
			l.list(at, path, MaxAddresses, func(at *yaml.Node, path string) { l.address(at, path, node) })
		}},
		"window": {false, func(at *yaml.Node, path string) { node.Window = l.window(at, path) }},
		"count": {false, func(at *yaml.Node, path string) {
			count, err := strconv.Atoi(at.Value)
			if at.ShortTag() != "!!int" || err != nil || count < 1 || count > MaxCount {
				l.fault(at, path, "this must be a number from 1 to %d", MaxCount)
				return
			}
			node.Count = count
		}},
		"rejoin": {false, func(at *yaml.Node, path string) {
			if at.ShortTag() != "!!bool" || (at.Value != "true" && at.Value != "false") {
				l.fault(at, path, "this must be true or false")
				return
			}
			node.Rejoin = at.Value == "true"
		}},
	})
	if node.Name == "" {
		return
	}
	l.own(at, path+".name", node.Name, node.Name)
	for _, name := range node.DNSNames {
		l.own(at, path+".addresses", name, node.Name)
	}
	for _, address := range node.Addresses {
		l.own(at, path+".addresses", address.String(), node.Name)
	}
	if !slices.Contains(node.DNSNames, node.Name) {
		node.DNSNames = append(node.DNSNames, node.Name)
	}
	l.inventory.nodes[node.Name] = node
}

// own keeps two nodes from having a name or an address in common: then one could serve as the other.
func (l *loader) own(at *yaml.Node, path, value, node string) {
	if other, taken := l.owner[value]; taken && (other != node || l.inventory.nodes[node] != nil) {
		l.fault(at, path, "%q belongs to %q already", value, other)
		return
	}
	l.owner[value] = node
}

func (l *loader) host(at *yaml.Node, path, name string) bool {
	if problem := HostProblem(name); problem != "" {
		l.fault(at, path, "%q %s", name, problem)
		return false
	}
	return true
}

func (l *loader) address(at *yaml.Node, path string, node *Node) {
	value, ok := l.text(at, path)
	if !ok {
		return
	}
	ip, err := netip.ParseAddr(value)
	switch {
	case err == nil && AddressProblem(ip) != "":
		l.fault(at, path, "%q %s", value, AddressProblem(ip))
	case err == nil && slices.Contains(node.Addresses, ip), err != nil && slices.Contains(node.DNSNames, value):
		l.fault(at, path, "%q is there twice", value)
	case err == nil:
		node.Addresses = append(node.Addresses, ip)
	case l.host(at, path, value):
		node.DNSNames = append(node.DNSNames, value)
	}
}

func (l *loader) window(at *yaml.Node, path string) *Window {
	w := &Window{}
	before := len(l.faults)
	read := func(into *time.Time) field {
		return field{true, func(at *yaml.Node, path string) {
			value, ok := l.text(at, path, "!!timestamp")
			if !ok {
				return
			}
			moment, err := time.Parse(time.RFC3339, value)
			if err != nil {
				l.fault(at, path, "%q is no time; write it like 2026-01-31T08:00:00Z", value)
			}
			*into = moment
		}}
	}
	l.mapping(at, path, map[string]field{"notBefore": read(&w.NotBefore), "notAfter": read(&w.NotAfter)})
	if len(l.faults) == before && !w.NotBefore.Before(w.NotAfter) {
		l.fault(at, path, "notAfter must be after notBefore")
	}
	return w
}
