// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"regexp"
	"slices"
)

var (
	jsonSecret = regexp.MustCompile(`\\*"kind\\*"\s*:\s*\\*"Secret(?:List)?\\*"`)
	// jsonData matches the beginning of its data.
	jsonData   = regexp.MustCompile(`(\\*)"(?:data|stringData)\\*"\s*:\s*\{`)
	yamlSecret = regexp.MustCompile(`^(?:- )?kind:\s*["']?Secret(List)?["']?\s*$`)
	yamlData   = regexp.MustCompile(`^(?:- )?(?:data|stringData):\s*(\S.*)?$`)
	yamlEntry  = regexp.MustCompile(`^["']?[\w.-]+["']?:\s*(?:[|>][0-9+-]*\s*$|(\S.*))?$`)
	prefix     = regexp.MustCompile(`^\S.{0,80}?\[\d+\]: `)
)

// jsonSecrets replaces the data of Secrets in JSON, in a document or in a line of a log.
func (r *redactor) jsonSecrets(text []byte) []byte {
	if !bytes.Contains(text, []byte("Secret")) {
		return text
	}
	var edits []edit
	for _, kind := range jsonSecret.FindAllIndex(text, -1) {
		start, end := enclosing(text, kind[0])
		for _, m := range jsonData.FindAllSubmatchIndex(text[start:end], -1) {
			from := start + m[1]
			to := closing(text, from)
			inside := text[from:to]
			quote := string(text[start+m[2]:start+m[3]]) + `"`
			with := quote + placeholder + quote + ":" + quote + placeholder + quote
			if len(bytes.TrimSpace(inside)) == 0 || bytes.Equal(bytes.TrimSpace(inside), []byte(with)) {
				continue
			}
			// Keep the number of lines.
			with += string(bytes.Repeat([]byte("\n"), bytes.Count(inside, []byte("\n"))))
			edits = append(edits, edit{from, to, SecretData, with})
		}
	}
	// A list of Secrets with their kinds yields each of them twice.
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	last := 0
	return r.replace(text, slices.DeleteFunc(edits, func(e edit) bool {
		if e.start < last {
			return true
		}
		last = e.end
		return false
	}))
}

// enclosing returns the bounds of the object at a position. Braces in strings count too: they are usually in pairs, and
// otherwise more is replaced.
func enclosing(text []byte, at int) (int, int) {
	depth, start := 0, 0
	for i := at; i >= 0; i-- {
		switch text[i] {
		case '}':
			depth++
		case '{':
			depth--
		}
		if depth < 0 {
			start = i
			break
		}
	}
	return start, closing(text, at)
}

// closing returns the position of the brace that ends the object at a position, or the end of the text.
func closing(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(text)
}

type line struct {
	start, end int // of the content in the text, without indentation and line break
	indent     int
	prefixed   bool
}

func content(text []byte, l line) []byte { return text[l.start:l.end] }

// column returns the column of the line's key, after the dash of a list.
func column(text []byte, l line) int {
	if bytes.HasPrefix(content(text, l), []byte("- ")) {
		return l.indent + 2
	}
	return l.indent
}

func yamlLines(text []byte) []line {
	var lines []line
	start := 0
	for raw := range bytes.Lines(text) {
		l := line{start: start, end: start + len(bytes.TrimRight(raw, " \t\r\n"))}
		start += len(raw)
		if m := prefix.FindIndex(raw); m != nil {
			l.start, l.prefixed = min(l.start+m[1], l.end), true
		}
		for l.start < l.end && text[l.start] == ' ' {
			l.start++
			l.indent++
		}
		lines = append(lines, l)
	}
	return lines
}

// yamlSecrets replaces the data of Secrets in YAML, before or after the kind, on the level of the kind.
func (r *redactor) yamlSecrets(text []byte) []byte {
	if !bytes.Contains(text, []byte("Secret")) {
		return text
	}
	lines := yamlLines(text)
	secret := map[int]bool{} // lines of data
	for i, l := range lines {
		m := yamlSecret.FindSubmatch(content(text, l))
		if m == nil {
			continue
		}
		own, list := column(text, l), len(m[1]) > 0
		for _, step := range []int{-1, 1} {
			for j := i; j >= 0 && j < len(lines); j += step {
				other := lines[j]
				if other.prefixed != l.prefixed || other.start == other.end {
					continue
				}
				if other.indent < own && column(text, other) != own || step > 0 && j > i && other.indent < own || string(content(text, other)) == "---" {
					break
				}
				if yamlData.Match(content(text, other)) && (column(text, other) == own || list) {
					secret[j] = true
				}
				if step < 0 && other.indent < own {
					break // the first line of an entry of a list
				}
			}
		}
	}
	var edits []edit
	for i := range lines {
		if !secret[i] {
			continue
		}
		if m := yamlData.FindSubmatchIndex(content(text, lines[i])); m[2] >= 0 && text[lines[i].start+m[2]] == '{' {
			edits = append(edits, edit{lines[i].start + m[2], lines[i].end, SecretData, placeholder})
		}
		edits = append(edits, values(text, lines, i)...)
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	return r.replace(text, slices.DeleteFunc(edits, func(e edit) bool { return isPlaceholder(text[e.start:e.end]) }))
}

func values(text []byte, lines []line, key int) []edit {
	var edits []edit
	for _, l := range lines[key+1:] {
		if l.prefixed != lines[key].prefixed || l.start == l.end {
			continue
		}
		if l.indent <= column(text, lines[key]) {
			break
		}
		start := l.start
		if m := yamlEntry.FindSubmatchIndex(content(text, l)); m != nil {
			if m[2] < 0 {
				continue
			}
			start += m[2]
		}
		edits = append(edits, edit{start, l.end, SecretData, placeholder})
	}
	return edits
}
