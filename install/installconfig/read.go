// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	"go.yaml.in/yaml/v3"

	"github.com/solonode/sno/render/inputs"
)

// Purpose is the command that reads the config. Each has checks of its own (R-BIP-27).
type Purpose string

// Purposes.
const (
	SingleNode Purpose = "single-node-ignition-config"
	AllInOne   Purpose = "aio-ignition"
)

// Options of Read.
type Options struct {
	Purpose            Purpose
	InstallerArguments string
	// OVNKubernetes is the user's manifest of the cluster network operator; nil means its defaults.
	OVNKubernetes *operatorv1.OVNKubernetesConfig
}

// DiskVariable is the environment variable with the disk and other arguments of coreos-installer, older than the field
// bootstrapInPlace.installationDisk (U-INS-2).
const DiskVariable = "OPENSHIFT_INSTALL_EXPERIMENTAL_BOOTSTRAP_IN_PLACE_COREOS_INSTALLER_ARGS"

type reader struct {
	Options
	file     string
	root     *yaml.Node
	faults   inputs.Faults
	warnings []string
}

// Read reads an install-config. The error is inputs.Faults with all that is wrong, each with line and advice. Warnings
// are about fields that are set and have no effect.
func Read(file string, text []byte, o Options) (*Config, []string, error) {
	r := &reader{Options: o, file: file}
	raw := r.parse(text)
	if raw == nil {
		return nil, nil, r.faults
	}
	r.fields("", r.root, 0)
	c := r.config(raw)
	if len(r.faults) > 0 {
		r.dropConsequences()
		slices.SortStableFunc(r.faults, func(a, b inputs.Fault) int { return a.Line - b.Line })
		return nil, r.warnings, r.faults
	}
	return c, r.warnings, nil
}

var lineInError = regexp.MustCompile(`line (\d+): (.*)`)

func (r *reader) parse(text []byte) *rawConfig {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty") //nolint:err113 // the text of a fault
		}
		r.syntax(err)
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.faults = append(r.faults, inputs.Fault{
			File: r.file, Line: second.Line, Problem: "there is a second document", Advice: "an install-config is one document", Kind: inputs.ErrSyntax,
		})
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		r.faults = append(r.faults, inputs.Fault{File: r.file, Line: document.Line, Problem: "not a mapping", Kind: inputs.ErrSyntax})
		return nil
	}
	r.root = document.Content[0]
	raw := &rawConfig{}
	err := r.root.Decode(raw)
	if err == nil {
		return raw
	}
	r.syntax(err)
	if wrongTypes := new(yaml.TypeError); !errors.As(err, &wrongTypes) || strings.Contains(err.Error(), "already defined") {
		return nil // nothing was decoded
	}
	return raw
}

// dropConsequences removes errors of values that were not decoded.
func (r *reader) dropConsequences() {
	unread := map[int]bool{}
	for _, f := range r.faults {
		unread[f.Line] = unread[f.Line] || errors.Is(f, inputs.ErrSyntax)
	}
	r.faults = slices.DeleteFunc(r.faults, func(f inputs.Fault) bool { return unread[f.Line] && !errors.Is(f, inputs.ErrSyntax) })
}

// deepest limits the depth of fields, because an alias may contain itself.
const deepest = 16

func (r *reader) syntax(err error) {
	found := lineInError.FindAllStringSubmatch(err.Error(), -1)
	for _, match := range found {
		line, _ := strconv.Atoi(match[1]) // it is digits
		r.faults = append(r.faults, inputs.Fault{File: r.file, Line: line, Problem: match[2], Kind: inputs.ErrSyntax})
	}
	if len(found) == 0 {
		r.faults = append(r.faults, inputs.Fault{File: r.file, Problem: strings.TrimPrefix(err.Error(), "yaml: "), Kind: inputs.ErrSyntax})
	}
}

func (r *reader) fields(path string, n *yaml.Node, depth int) {
	if depth > deepest {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.field(strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i], n.Content[i+1], depth)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			r.fields(fmt.Sprintf("%s[%d]", path, i), item, depth+1)
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
}

func (r *reader) field(path string, key, value *yaml.Node, depth int) {
	row, covered := rowOf(path)
	switch {
	case empty(value):
		// As a generated file has "creationTimestamp: null".
	case leadsToRow(path):
		r.fields(path, value, depth+1)
	case !covered:
		advice := "see docs/install-fields.md for all fields"
		if meant := inAnotherCase(path); meant != "" {
			advice = "did you mean " + meant + "?"
		}
		r.faults = append(r.faults, inputs.Fault{File: r.file, Line: key.Line, Field: path, Problem: "unknown field", Advice: advice, Kind: inputs.ErrUnknownField})
	case len(value.Content) == 0 && value.Kind == yaml.MappingNode && !strings.HasPrefix(path, "platform.") && (row.Effect == Refused || row.Effect == Ignored):
		// {} sets nothing. Only a platform is chosen by its name alone.
	case row.Effect == Honoured, row.Effect == Recorded:
		r.fields(path, value, depth+1)
	case row.Effect == Refused:
		r.faults = append(r.faults, inputs.Fault{
			File: r.file, Line: key.Line, Field: path, Problem: "refused: " + row.Why, Advice: "remove the field", Kind: inputs.ErrUnsupported,
		})
	case row.Effect == Ignored:
		r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: %s: without effect: %s", r.file, key.Line, path, row.Why))
	}
}

// empty reports whether a value is null, "" or []. {} is not empty, as in "none: {}".
func empty(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.AliasNode:
		return false
	case yaml.ScalarNode:
		return n.Tag == "!!null" || n.Value == ""
	case yaml.SequenceNode:
		return len(n.Content) == 0
	case yaml.DocumentNode, yaml.MappingNode:
	}
	return false
}

func (r *reader) line(path string) int {
	n, line := r.root, 0
	for segment := range strings.SplitSeq(path, ".") {
		name, indices, _ := strings.Cut(segment, "[")
		key, value := child(n, name)
		if key == nil {
			return line
		}
		n, line = value, key.Line
		if i, err := strconv.Atoi(strings.TrimSuffix(indices, "]")); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			n = n.Content[i]
			line = n.Line
		}
	}
	return line
}

func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func (r *reader) fault(kind error, path, advice, format string, args ...any) {
	r.faults = append(r.faults, inputs.Fault{
		File: r.file, Line: r.line(path), Field: path, Problem: fmt.Sprintf(format, args...), Advice: advice, Kind: kind,
	})
}
