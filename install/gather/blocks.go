// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"regexp"
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	// keyLine matches the end of a line that may be part of a key, and keyLast the one before the end.
	keyLine = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}={0,2}\s*$`)
	keyLast = regexp.MustCompile(`[A-Za-z0-9+/_-]+={0,2}\s*$`)
)

// keyLines limits the lines of a key without an end.
const keyLines = 200

// keys removes private keys in PEM. Lines may have a prefix, as in a journal, or other lines between them; the
// beginning or the end may be missing.
func (r *redactor) keys() {
	line := func(i int, pattern *regexp.Regexp) bool {
		m := pattern.FindIndex(r.lines[i])
		if m != nil {
			r.cut(i, m[0], PrivateKey)
		}
		return m != nil
	}
	left := 0 // lines that may still be of a key that has begun
	for i := range r.lines {
		if left == 0 && !bytes.Contains(r.lines[i], []byte("PRIVATE KEY")) {
			continue
		}
		begin, end := keyBegin.FindIndex(r.lines[i]), keyEnd.FindIndex(r.lines[i])
		switch {
		case begin != nil:
			left = keyLines
			if end != nil {
				left = 0
			}
			r.cut(i, begin[0], PrivateKey)
		case end != nil:
			if i > 0 {
				line(i-1, keyLast)
			}
			for j := i - 2; left == 0 && j >= 0 && line(j, keyLine); j-- { // the beginning is missing
			}
			r.cut(i, end[0], PrivateKey)
			left = 0
		case left > 0:
			line(i, keyLine)
			left--
		}
	}
}

var (
	journalPrefix = regexp.MustCompile(`^\S.{0,80}?\[\d+\]: `)
	indentation   = regexp.MustCompile(`^ *(?:- )?`)
	secretKind    = regexp.MustCompile(`\bkind\\*["']?\s*:\s*\\*["']?Secret(?:List)?\b`)
	secretData    = regexp.MustCompile(`(?:^|[\s"'{,\\-])(?:data|stringData)\\*["']?\s*:\s*\{?`)
	entry         = regexp.MustCompile(`^["']?[\w.-]+["']?:(?:\s+[|>][0-9+-]*$|\s+|$)`)
)

// column returns where the content of a line begins, without the prefix of a journal, and its indentation.
func (r *redactor) column(i int) (start, indent int) {
	line := bytes.TrimRight(r.lines[i], " \t\r\n")
	prefix := len(journalPrefix.Find(line))
	indent = len(indentation.Find(line[prefix:]))
	return prefix + indent, indent
}

// indented calls f for the lines after a line that have a larger indentation.
func (r *redactor) indented(i int, f func(j, start int)) {
	_, own := r.column(i)
	for j := i + 1; j < len(r.lines); j++ {
		start, indent := r.column(j)
		if len(bytes.TrimSpace(r.lines[j][start:])) == 0 {
			continue
		}
		if indent <= own {
			return
		}
		f(j, start)
	}
}

// objects removes the data of Secrets in JSON and YAML, in a document or in a log. In a document with a Secret it
// removes the data of other objects too.
func (r *redactor) objects() {
	for from := 0; from < len(r.lines); {
		to, secret := from, false
		for ; to < len(r.lines) && string(bytes.TrimSpace(r.lines[to])) != "---"; to++ {
			secret = secret || bytes.Contains(r.lines[to], []byte("Secret")) && secretKind.Match(r.lines[to])
		}
		for i := from; secret && i < to; i++ {
			m := secretData.FindIndex(r.lines[i])
			if m == nil {
				continue
			}
			r.cut(i, m[1], SecretData)
			r.indented(i, func(j, start int) {
				r.cut(j, start+len(entry.Find(bytes.TrimRight(r.lines[j][start:], "\r\n"))), SecretData)
			})
		}
		from = to + 1
	}
}

var (
	secretBlock = regexp.MustCompile(`(?i)^(?:- )?["']?` + secretName + `["']?:\s*[|>][0-9+-]*\s*$`)
	secretAlone = regexp.MustCompile(`(?i)"(?:auth|` + secretName + `)"\s*:\s*$`)
	namedSecret = regexp.MustCompile(`(?i)\b(?:name|key)\\*["']?\s*:\s*\\*["']?` + secretName + `\\*["']?\s*,?\s*$`)
	itsValue    = regexp.MustCompile(`^\\*["']?value\\*["']?\s*:\s*`)
)

// below removes what follows the name of a secret on the next lines: a block of text, a string, or the value of a
// variable.
func (r *redactor) below(i int) {
	start, _ := r.column(i)
	switch name := r.lines[i][start:]; {
	case secretBlock.Match(name):
		r.indented(i, func(j, start int) { r.cut(j, start, Token) })
	case i+1 == len(r.lines):
	case secretAlone.Match(name):
		if next, _ := r.column(i + 1); bytes.HasPrefix(r.lines[i+1][next:], []byte(`"`)) {
			r.cut(i+1, next, Password)
		}
	case namedSecret.Match(name):
		next, _ := r.column(i + 1)
		if m := itsValue.FindIndex(r.lines[i+1][next:]); m != nil && !harmless.Match(bytes.TrimSpace(r.lines[i+1][next+m[1]:])) {
			r.cut(i+1, next+m[1], Password)
		}
	}
}

// wrappedLine matches a line of base64 that continues in the next one, and lastLine the end.
var (
	wrappedLine = regexp.MustCompile(`^\s*[A-Za-z0-9+/_-]{60,}\s*$`)
	lastLine    = regexp.MustCompile(`^\s*[A-Za-z0-9+/][A-Za-z0-9+/_-]*={0,2}\s*$`)
)

// wrapped removes base64 of several lines with a secret in it.
func (r *redactor) wrapped() {
	for i := 0; i < len(r.lines); i++ {
		end := i
		for end < len(r.lines) && wrappedLine.Match(r.lines[end]) {
			end++
		}
		if end > i && end < len(r.lines) && lastLine.Match(r.lines[end]) {
			end++
		}
		if end-i < 2 {
			continue
		}
		var joined []byte
		for _, line := range r.lines[i:end] {
			joined = append(joined, bytes.TrimSpace(line)...)
		}
		if kind := r.contains(decode(joined)); kind != "" {
			for j := i; j < end; j++ {
				r.cut(j, 0, kind)
			}
		}
		i = end - 1
	}
}
