// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/solonode/sno/approver/decision"
)

const marker = "# sno.solonode.github.io/approver"

// disable fails the test unless the text is unchanged, or the flow is disabled and the edit can be removed.
func disable(t *testing.T, text string) (string, error) {
	t.Helper()
	got, err := decision.DisableNodeClient(text)
	disabled, unread := decision.NodeClientDisabled(got)
	back, found := decision.EnableNodeClient(got)
	switch {
	case err != nil && got != text:
		t.Errorf("edited in spite of an error: %s", got)
	case err == nil && (unread != nil || !disabled):
		t.Errorf("the stock approver reads disabled=%t, %v", disabled, unread)
	case got != text && (!found || back != text):
		t.Errorf("edit found: %t, after removing it: %q", found, back)
	}
	return got, err
}

func TestDisableNodeClient(t *testing.T) {
	line := "nodeClientCert: {disabled: true} " + marker + "\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", line},
		{"only a line break", "\n", "\n" + line},
		{"only comments", "# nothing yet\n", "# nothing yet\n" + line},
		{"comments without a line break", "# nothing yet", "# nothing yet\n" + strings.TrimSuffix(line, "\n")},
		{"an empty document", "---\n", "---\n" + line},
		{"other keys", "# of the machine team\nlogLevel: 4 # see the runbook\n\n\nzone: a\n", "# of the machine team\n" + line + "logLevel: 4 # see the runbook\n\n\nzone: a\n"},
		{"no line break at the end", "logLevel: 4", line + "logLevel: 4"},
		{"a start of document", "--- # start\nlogLevel: 4\n", "--- # start\n" + line + "logLevel: 4\n"},
		{"an odd indentation", "   a: 1\n   b: [1,\n2]\n", "   " + line + "   a: 1\n   b: [1,\n2]\n"},
		{"a text with blank lines at the end", "note: |+\n  text\n\n\n", line + "note: |+\n  text\n\n\n"},
		{"lines that end with CR LF", "a: 1\r\nb: 2\r\n", strings.TrimSuffix(line, "\n") + "\r\na: 1\r\nb: 2\r\n"},
		{"the section without a value", "nodeClientCert:\n", "nodeClientCert:\n  disabled: true " + marker + "\n"},
		{"the section without a value, last", "a: 1\nnodeClientCert: # soon", "a: 1\nnodeClientCert: # soon\n  disabled: true " + marker},
		{"the section without a value, first", "nodeClientCert:\n# soon\na: 1\n", "nodeClientCert:\n  disabled: true " + marker + "\n# soon\na: 1\n"},
		{"the section with another key", "nodeClientCert:\n    # how long\n    limit: 4\n", "nodeClientCert:\n    # how long\n    disabled: true " + marker + "\n    limit: 4\n"},
		{"the section in upper case", "NodeClientCert:\n  limit: 4\n", "NodeClientCert:\n  disabled: true " + marker + "\n  limit: 4\n"},
		{"the section in braces", "nodeClientCert: {limit: 4}\n", "nodeClientCert: {disabled: true, " + marker + "\n        limit: 4}\n"},
		{"empty braces", "nodeClientCert: {}\n", "nodeClientCert: {disabled: true, " + marker + "\n        }\n"},
		{"JSON", `{"logLevel": 4}`, "{nodeClientCert: {disabled: true}, " + marker + "\n        \"logLevel\": 4}"},
		{"JSON with the section", "{\n  \"nodeClientCert\": { \"limit\": 4 }\n}\n", "{\n  \"nodeClientCert\": {disabled: true, " + marker + "\n         \"limit\": 4 }\n}\n"},
		{"characters of several bytes before the brace", "{größe: 1, nodeClientCert: {ü: 1}}\n", "{größe: 1, nodeClientCert: {disabled: true, " + marker + "\n        ü: 1}}\n"},
		{"anchors elsewhere", "base: &b {x: 1}\nother:\n  <<: *b\n", line + "base: &b {x: 1}\nother:\n  <<: *b\n"},
		{"disabled already", "nodeClientCert:\n  disabled: true\n", "nodeClientCert:\n  disabled: true\n"},
		{"disabled already, in another notation", `{"NODECLIENTCERT": {"Disabled": true}}`, `{"NODECLIENTCERT": {"Disabled": true}}`},
		{"disabled through an alias", "x: &x {disabled: true}\nnodeClientCert: *x\n", "x: &x {disabled: true}\nnodeClientCert: *x\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := disable(t, tt.text)
			if err != nil || got != tt.want {
				t.Fatalf("%v\ngot\n%s\nwant\n%s", err, got, tt.want)
			}
			if again, err := disable(t, got); err != nil || again != got {
				t.Errorf("again: %v\n%s", err, again)
			}
			if _, found := decision.EnableNodeClient(got); found != (got != tt.text) {
				t.Errorf("an edit is found: %t", found)
			}
		})
	}
}

func TestDisableNodeClientRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"invalid YAML", "a: [\n", decision.ErrConfig},
		{"a scalar", "hello", decision.ErrConfig},
		{"a list", "- nodeClientCert\n", decision.ErrConfig},
		{"a tab", "a:\n\tb: 1\n", decision.ErrConfig},
		{"a duplicate key", "a: 1\na: 2\n", decision.ErrConfig},
		{"two documents", "a: 1\n---\nnodeClientCert: {disabled: true}\n", decision.ErrConfig},
		{"a section that is a string", "nodeClientCert: yes please\n", decision.ErrConfig},
		{"a section that is null", "nodeClientCert: null\n", decision.ErrConfig},
		{"a section that is a tilde", "nodeClientCert: ~\n", decision.ErrConfig},
		{"a section with an anchor", "nodeClientCert: &x\n  limit: 4\nother: *x\n", decision.ErrConfig},
		{"a section that is an alias", "x: &x {limit: 4}\nnodeClientCert: *x\n", decision.ErrConfig},
		{"a section from a merge key", "x: &x {nodeClientCert: {limit: 4}}\n<<: *x\n", decision.ErrConfig},
		{"the section twice, in different cases", "nodeClientCert: {}\nNodeClientCert: {}\n", decision.ErrConfig},
		{"a key with a question mark", "? a\n: 1\n", decision.ErrConfig},
		{"a byte order mark", "\ufeffa: 1\n", decision.ErrConfig},
		{"a value that is not a boolean", "nodeClientCert: {disabled: perhaps}\n", decision.ErrConfig},
		{"disabled: false", "nodeClientCert:\n  disabled: false # we trust our network\n", decision.ErrNodeClientEnabled},
		{"no value", "nodeClientCert:\n  disabled:\n", decision.ErrNodeClientEnabled},
		{"false in braces", "{nodeClientCert: {Disabled: false}}", decision.ErrNodeClientEnabled},
	} {
		if _, err := disable(t, tt.text); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Later changes of a person stay when the inserted line is removed.
func TestEnableNodeClient(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		found            bool
	}{
		{"moved and indented", "a: 1\nb:\n  x: 1\nnodeClientCert: {disabled: true} " + marker + "\nc: 1\n", "a: 1\nb:\n  x: 1\nc: 1\n", true},
		{"at the end, without a line break", "a: 1\nnodeClientCert: {disabled: true} " + marker, "a: 1", true},
		{"followed by another key", "nodeClientCert:\n  disabled: true " + marker + "\n  limit: 4\n", "nodeClientCert:\n  limit: 4\n", true},
		{"without the comment", "nodeClientCert: {disabled: true}\n", "nodeClientCert: {disabled: true}\n", false},
		{"changed to false", "nodeClientCert: {disabled: false} " + marker + "\n", "nodeClientCert: {disabled: false} " + marker + "\n", false},
		{"nothing", "", "", false},
	} {
		if got, found := decision.EnableNodeClient(tt.text); got != tt.want || found != tt.found {
			t.Errorf("%s: %t\n%s", tt.name, found, got)
		}
	}
}

// Everything else stays the same, byte by byte.
func ExampleDisableNodeClient() {
	text := "# of the platform team\nlogLevel: 4 # see the runbook\n"
	disabled, err := decision.DisableNodeClient(text)
	fmt.Print(disabled)
	back, removed := decision.EnableNodeClient(disabled)
	fmt.Println(err, removed, back == text)
	// Output:
	// # of the platform team
	// nodeClientCert: {disabled: true} # sno.solonode.github.io/approver
	// logLevel: 4 # see the runbook
	// <nil> true true
}

// Any text is either unchanged, or has the flow disabled by an edit that can be removed.
func FuzzDisableNodeClient(f *testing.F) {
	for _, text := range []string{"", "a: 1\n", "nodeClientCert:\n", "nodeClientCert: {}\n", `{"a": 1}`, "a: &x 1\nb: *x\r\n", "--- {a: b}\n", "nodeClientCert: {disabled: false}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { _, _ = disable(t, text) })
}
