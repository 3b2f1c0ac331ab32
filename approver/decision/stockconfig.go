// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
)

var (
	// ErrConfig is returned for a configuration that cannot be read or edited.
	ErrConfig = errors.New("the configuration of the stock approver cannot be edited")
	// ErrNodeClientEnabled is returned where disabled has another value than true, which a person has chosen.
	ErrNodeClientEnabled = errors.New("the configuration of the stock approver keeps its node-client flow enabled")
)

const (
	sectionKey   = "nodeClientCert"
	disabledKey  = "disabled"
	setting      = disabledKey + ": true"                    // inserted into an existing section
	wholeSection = sectionKey + ": {" + setting + "}"        // inserted where there is none
	marker       = "# " + patch.Domain + "/" + approver.Name // ends the inserted line, and identifies it
	flowIndent   = "        "                                // begins the rest of a line in braces
)

// NodeClientDisabled parses a configuration like the stock approver: YAML as JSON, keys in any case, only the first
// document.
func NodeClientDisabled(text string) (bool, error) {
	var config struct {
		NodeClientCert struct {
			Disabled bool `json:"disabled"`
		} `json:"nodeClientCert"`
	}
	raw, err := sigsyaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return config.NodeClientCert.Disabled, nil
}

// DisableNodeClient inserts one fragment that disables the node-client flow. With an error the text is unchanged.
func DisableNodeClient(text string) (string, error) {
	disabled, err := NodeClientDisabled(text)
	if err != nil || disabled {
		return text, err
	}
	edited, key, err := insert(text)
	if err == nil {
		err = verify(text, edited, key)
	}
	if err != nil {
		return text, err
	}
	return edited, nil
}

// enableNodeClient removes what DisableNodeClient inserted, and reports whether there was such a fragment.
func enableNodeClient(text string) (string, bool) {
	without := text
	for _, fragment := range fragments {
		without = fragment.ReplaceAllString(without, "")
	}
	return without, without != text
}

var (
	inserted  = "(?:" + regexp.QuoteMeta(wholeSection) + "|" + setting + ")"
	comment   = " " + regexp.QuoteMeta(marker)
	fragments = []*regexp.Regexp{
		regexp.MustCompile(inserted + "," + comment + `\r?\n` + flowIndent), // inside braces
		regexp.MustCompile(`(?m)^ *` + inserted + comment + `\r?\n`),        // a line
		regexp.MustCompile(`(?:\r?\n|\A) *` + inserted + comment + `\z`),    // the last line, without a line break
	}
)

func parse(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	case !errors.Is(decoder.Decode(&second), io.EOF):
		return nil, fmt.Errorf("%w: it has a second document, which the stock approver ignores; remove it", ErrConfig)
	}
	return first.Content[0], nil
}

// insert inserts the fragment at the root or into a section, and returns the section's key as written.
func insert(text string) (edited, key string, err error) {
	into, err := parse(text)
	if err != nil {
		return "", "", err
	}
	key, pair, line, indent := sectionKey, wholeSection, strings.Count(text, "\n")+2, 0
	if into != nil && into.Kind == yaml.MappingNode {
		name, section, err := find(into, sectionKey)
		if err != nil {
			return "", "", err
		}
		if name != nil {
			into, key, pair, line, indent = section, name.Value, setting, name.Line+1, name.Column+1
			if at, _, err := find(section, disabledKey); err != nil || at != nil {
				return "", "", errors.Join(err, ErrNodeClientEnabled)
			}
		}
	}
	switch {
	case into == nil || into.ShortTag() == "!!null" && into.Value == "": // there is no value
		return insertLine(text, line, indent, pair), key, nil
	case into.Kind == yaml.MappingNode:
		edited, err = insertFirst(text, into, pair)
		return edited, key, err
	}
	return "", "", fmt.Errorf("%w: line %d: %s must be a mapping without anchor or alias", ErrConfig, into.Line, sectionKey)
}

func find(mapping *yaml.Node, name string) (key, value *yaml.Node, err error) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if !strings.EqualFold(mapping.Content[i].Value, name) {
			continue
		}
		if key != nil {
			return nil, nil, fmt.Errorf("%w: line %d: duplicate key %s", ErrConfig, mapping.Content[i].Line, name)
		}
		key, value = mapping.Content[i], mapping.Content[i+1]
	}
	return key, value, nil
}

func insertFirst(text string, mapping *yaml.Node, pair string) (string, error) {
	if mapping.Style&yaml.FlowStyle == 0 {
		first := mapping.Content[0]
		return insertLine(text, first.Line, first.Column-1, pair), nil
	}
	start := lineStart(text, mapping.Line)
	characters := []rune(text[start:]) // columns count characters, not bytes
	at := start + len(string(characters[:min(mapping.Column, len(characters))]))
	if at == 0 || text[at-1] != '{' {
		return "", fmt.Errorf("%w: line %d: a brace is missing", ErrConfig, mapping.Line)
	}
	return text[:at] + pair + ", " + marker + lineBreak(text) + flowIndent + text[at:], nil
}

// insertLine inserts before a line, counted from 1, or at the end.
func insertLine(text string, number, indent int, pair string) string {
	line := strings.Repeat(" ", indent) + pair + " " + marker
	at := lineStart(text, number)
	if at == len(text) && text != "" && !strings.HasSuffix(text, "\n") {
		return text + lineBreak(text) + line
	}
	return text[:at] + line + lineBreak(text) + text[at:]
}

func lineStart(text string, number int) int {
	lines := strings.SplitAfter(text, "\n")
	return len(strings.Join(lines[:min(number-1, len(lines))], ""))
}

func lineBreak(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// verify returns an ErrConfig unless the edit changed one value, the stock approver can read it, and it can be removed
// again.
func verify(before, after, key string) error {
	var want, have map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(before), &want), yaml.Unmarshal([]byte(after), &have)); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if want == nil {
		want = map[string]any{}
	}
	section, _ := want[key].(map[string]any)
	if section == nil {
		section = map[string]any{}
	}
	section[disabledKey] = true
	want[key] = section
	disabled, err := NodeClientDisabled(after)
	restored, _ := enableNodeClient(after)
	if err != nil || !disabled || restored != before || !reflect.DeepEqual(want, have) {
		return fmt.Errorf("%w: its notation cannot be edited; insert %s by hand", ErrConfig, wholeSection)
	}
	return nil
}
