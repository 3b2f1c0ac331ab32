// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"regexp"
)

const (
	secretName = `(?:[\w.-]*(?:token|passwords?|passwd|passphrase|secret|secret[_-]?key|secret[_-]?access[_-]?key|client[_-]?key[_-]?data|` +
		`api[_-]?key|private[_-]?key|password[_-]?hash)|(?:[\w.-]*[_.-])?(?:pass|pwd))`
	// secretValue matches a string of JSON, one inside of a string of JSON, one in single quotes, or a word.
	secretValue = `(?:"((?:[^"\\\n]|\\.)*)"|\\+"([^"\\\n]*)\\+"|'([^'\n]*)'|([^\s"'\\,;&{}\[\]<][^\s"'\\,;&]*))`
)

var (
	secretField = regexp.MustCompile(`(?i)\b` + secretName + `\\*["']?[ \t]*([:=]+)[ \t]*` + secretValue)
	secretFlag  = regexp.MustCompile(`(?i)--` + secretName + `["']?[ \t,]+` + secretValue)
	secretPair  = regexp.MustCompile(`(?i)\b(?:name|key)\\*["']?\s*:\s*\\*["']?` + secretName + `\\*["']?\s*,?\s*\\*["']?value\\*["']?\s*:\s*` + secretValue)
	// secretLine matches a line that has only a field, whose value may have spaces.
	secretLine = regexp.MustCompile(`(?i)^\s*(?:- )?(?:export )?` + secretName + `(?:=|:[ \t]+)([^\s"'\\,;&{}\[\]<>|][^"'\n]*?)\s*$`)
	// secretBlock matches a field whose text is on the next lines.
	secretBlock = regexp.MustCompile(`(?i)^(?:- )?["']?` + secretName + `["']?:\s*[|>][0-9+-]*\s*$`)
	// harmless matches a value that is no secret: a switch, a number, a reference, or none.
	harmless = regexp.MustCompile(`(?i)^(?:|true|false|null|nil|~|none|yes|no|unset|\*+|\.+|x+|[|>][0-9+-]*|\d{1,5}|\d+[smhd]|\$[({]?\w*[)}]?.*|` + placeholder + `)$`)
)

func (r *redactor) fields(text []byte) []byte {
	words := []string{"token", "pass", "pwd", "secret", "key"}
	text = r.lines(text, words, func(line []byte) []edit {
		if m := secretLine.FindSubmatchIndex(line); m != nil && !harmless.Match(line[m[2]:m[3]]) && !isPlaceholder(line[m[2]:m[3]]) {
			return []edit{{m[2], m[3], Password, placeholder}}
		}
		return nil
	})
	text = r.lines(text, words, func(line []byte) []edit {
		var edits []edit
		for _, m := range secretField.FindAllSubmatchIndex(line, -1) {
			if e, ok := value(line, m[4:]); ok && !prose(line, m) {
				edits = append(edits, e)
			}
		}
		return edits
	})
	text = r.lines(text, []string{"--"}, func(line []byte) []edit {
		var edits []edit
		for _, m := range secretFlag.FindAllSubmatchIndex(line, -1) {
			if e, ok := value(line, m[2:]); ok && line[e.start] != '-' {
				edits = append(edits, e)
			}
		}
		return edits
	})
	var edits []edit
	for _, m := range secretPair.FindAllSubmatchIndex(text, -1) {
		if e, ok := value(text, m[2:]); ok {
			edits = append(edits, e)
		}
	}
	text = r.replace(text, edits)
	edits = nil
	lines := yamlLines(text)
	for i := range lines {
		if secretBlock.Match(content(text, lines[i])) {
			for _, e := range below(text, lines, i) {
				if !isPlaceholder(text[e.start:e.end]) {
					edits = append(edits, e)
				}
			}
		}
	}
	return r.replace(text, edits)
}

func below(text []byte, lines []line, key int) []edit {
	var edits []edit
	for _, l := range lines[key+1:] {
		if l.prefixed != lines[key].prefixed || l.start == l.end {
			continue
		}
		if l.indent <= column(text, lines[key]) {
			break
		}
		edits = append(edits, edit{l.start, l.end, Token, placeholder})
	}
	return edits
}

func value(text []byte, groups []int) (edit, bool) {
	for i := 0; i+1 < len(groups); i += 2 {
		if groups[i] < 0 {
			continue
		}
		found := text[groups[i]:groups[i+1]]
		return edit{groups[i], groups[i+1], Password, placeholder}, !harmless.Match(found)
	}
	return edit{}, false
}

// prose reports whether the word after a colon continues a sentence, as in "failed to fetch token: connection refused".
func prose(line []byte, m []int) bool {
	word := m[len(m)-2:]
	if word[0] < 0 || line[m[2]] != ':' || line[word[0]-1] != ' ' {
		return false
	}
	last := len(bytes.TrimSpace(line[word[1]:])) == 0
	return !last && !looksRandom(line[word[0]:word[1]])
}
