package approver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/solonode/sno/patch"
)

var (
	// ErrConfig is returned for a configuration of the stock approver that cannot be read, or not be edited without touching anything
	// else. One that it cannot read itself means to it that nothing is disabled.
	ErrConfig = errors.New("the configuration of the stock approver cannot be edited")
	// ErrConfigContrary is returned for one that says disabled: false, or anything else than true. That is a person's decision.
	ErrConfigContrary = errors.New("the configuration of the stock approver says that its node-client flow is not disabled")
)

const (
	flowKey     = "nodeClientCert"
	disabledKey = "disabled"
	// marker is the comment behind what was put in. It tells afterwards, wherever a person moved the line, that it is ours.
	marker = "# " + patch.Domain + "/" + Name
	// flowIndent begins the line behind the marker inside braces, where a comment needs one of its own.
	flowIndent = "        "
)

// NodeClientDisabled tells what the stock approver makes of its configuration: JSON by way of YAML, keys in any case, the first
// document only.
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

// DisableNodeClient is the configuration with the node-client flow disabled. What is there stays, byte for byte: one fragment is put
// in, which ends with a marker. A configuration that is disabled already comes back as it is. Errors are ErrConfig and
// ErrConfigContrary; nothing is to be written then.
func DisableNodeClient(text string) (string, error) {
	disabled, err := NodeClientDisabled(text)
	if err != nil || disabled {
		return text, err
	}
	root, err := document(text)
	if err != nil {
		return text, err
	}
	edited, err := insert(text, root)
	if err == nil {
		err = verify(text, edited)
	}
	if err != nil {
		return text, err
	}
	return edited, nil
}

// EnableNodeClient takes out what DisableNodeClient put in, and says whether there was anything. Everything else stays, also what
// was changed meanwhile.
func EnableNodeClient(text string) (string, bool) {
	without := text
	for _, ours := range fragments {
		without = ours.ReplaceAllString(without, "")
	}
	return without, without != text
}

var fragments = func() []*regexp.Regexp {
	ours := "(?:" + regexp.QuoteMeta(flowKey+": {"+disabledKey+": true}") + "|" + disabledKey + ": true)"
	return []*regexp.Regexp{
		regexp.MustCompile(ours + ", " + regexp.QuoteMeta(marker) + `\r?\n` + flowIndent),   // inside braces
		regexp.MustCompile(`(?m)^ *` + ours + " " + regexp.QuoteMeta(marker) + `\r?\n`),     // a line
		regexp.MustCompile(`(?:\r?\n|\A) *` + ours + " " + regexp.QuoteMeta(marker) + `\z`), // the last line, without an end
	}
}()

// document is the root of the only document; nil where there is nothing but comments.
func document(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it has a second document, which nobody reads; remove it", ErrConfig)
	}
	return first.Content[0], nil
}

// insert puts the fragment in, at the root or where nodeClientCert is already.
func insert(text string, root *yaml.Node) (string, error) {
	whole := flowKey + ": {" + disabledKey + ": true}"
	switch {
	case root == nil, implicitNull(root):
		return atLine(text, strings.Count(text, "\n")+2, 0, whole), nil
	case root.Kind != yaml.MappingNode:
		return "", fmt.Errorf("%w: it is no mapping", ErrConfig)
	}
	key, value, err := find(root, flowKey)
	switch {
	case err != nil:
		return "", err
	case key == nil:
		return into(text, root, whole)
	case value.Kind == yaml.MappingNode && value.Anchor == "":
		if at, _, err := find(value, disabledKey); err != nil || at != nil {
			return "", errors.Join(err, ErrConfigContrary)
		}
		return into(text, value, disabledKey+": true")
	case implicitNull(value):
		return atLine(text, key.Line+1, key.Column+1, disabledKey+": true"), nil
	}
	return "", fmt.Errorf("%w: line %d: write %s as a mapping of its own", ErrConfig, value.Line, flowKey)
}

// implicitNull is a value of which nothing is written.
func implicitNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && n.Value == "" && n.Anchor == ""
}

// find is a key of a mapping with its value, in whatever case, because the stock approver reads it in any; nil when it is not there.
func find(mapping *yaml.Node, name string) (key, value *yaml.Node, err error) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if !strings.EqualFold(mapping.Content[i].Value, name) {
			continue
		}
		if key != nil {
			return nil, nil, fmt.Errorf("%w: line %d: %s is there twice", ErrConfig, mapping.Content[i].Line, name)
		}
		key, value = mapping.Content[i], mapping.Content[i+1]
	}
	return key, value, nil
}

// into puts a pair before all others of a mapping.
func into(text string, mapping *yaml.Node, pair string) (string, error) {
	if mapping.Style&yaml.FlowStyle == 0 {
		first := mapping.Content[0]
		return atLine(text, first.Line, first.Column-1, pair), nil
	}
	start := lineStart(text, mapping.Line)
	at := start
	for range mapping.Column { // columns are characters
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	if at == 0 || text[at-1] != '{' {
		return "", fmt.Errorf("%w: line %d: no brace where one should be", ErrConfig, mapping.Line)
	}
	return text[:at] + pair + ", " + marker + newline(text) + flowIndent + text[at:], nil
}

// atLine puts a line before the one of that number, counted from 1, or behind the last.
func atLine(text string, number, indent int, pair string) string {
	line := strings.Repeat(" ", indent) + pair + " " + marker
	at := lineStart(text, number)
	if at == len(text) && text != "" && !strings.HasSuffix(text, "\n") {
		return text + newline(text) + line
	}
	return text[:at] + line + newline(text) + text[at:]
}

// lineStart is where the line of that number begins, or the end.
func lineStart(text string, number int) int {
	at := 0
	for range number - 1 {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return len(text)
		}
		at += next + 1
	}
	return at
}

// newline is the end of the lines of a text.
func newline(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// verify compares what was read before with what is read now, so that no trick of the notation makes a wrong edit: nothing but the
// one value has changed, the stock approver sees it, and it can be taken out again.
func verify(before, after string) error {
	was, err := generic(before)
	if err != nil {
		return err
	}
	is, err := generic(after)
	if err != nil {
		return err
	}
	section, _ := is[flowKeyIn(is)].(map[string]any)
	if section != nil {
		delete(section, disabledKey)
	}
	if old, there := was[flowKeyIn(was)]; len(section) == 0 && (!there || old == nil) {
		delete(is, flowKeyIn(is))
		delete(was, flowKeyIn(was))
	}
	disabled, err := NodeClientDisabled(after)
	undone, _ := EnableNodeClient(after)
	if err != nil || !disabled || undone != before || !reflect.DeepEqual(was, is) {
		return fmt.Errorf("%w: it is written in a way that an edit would change; write %s: {%s: true} into it by hand", ErrConfig, flowKey, disabledKey)
	}
	return nil
}

func generic(text string) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(strings.NewReader(text)).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if values == nil { // null
		values = map[string]any{}
	}
	return values, nil
}

// flowKeyIn is the key by which nodeClientCert is there.
func flowKeyIn(values map[string]any) string {
	for key := range values {
		if strings.EqualFold(key, flowKey) {
			return key
		}
	}
	return flowKey
}
