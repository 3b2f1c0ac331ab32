// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"regexp"
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)
	// keyRest matches the rest of a key with escaped line breaks.
	keyRest = regexp.MustCompile(`^(?:[A-Za-z0-9+/=]|\\+[rn]|%0A)*`)
	// keyLine matches the end of a line that may be part of a key.
	keyLine = regexp.MustCompile(`[A-Za-z0-9+/]{16,}={0,2}\s*$`)
	// keyLast matches the end of a line before the end of a key.
	keyLast = regexp.MustCompile(`[A-Za-z0-9+/]+={0,2}\s*$`)
)

// keyLines limits the lines of a key without an end.
const keyLines = 200

// privateKeys replaces private keys in PEM. Lines may have a prefix, as in a journal, or other lines between them; the
// beginning or the end may be missing.
func (r *redactor) privateKeys(text []byte) []byte {
	if !bytes.Contains(text, []byte("PRIVATE KEY")) {
		return text
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	begun := -1 // the line on which a key has begun
	var out []byte
	for i, line := range lines {
		end := keyEnd.FindIndex(line)
		if begun < 0 && end != nil && !keyBegin.Match(line[:end[0]]) {
			// The beginning is missing, so the lines before are part of the key.
			out = withoutKey(lines, i)
			r.found = append(r.found, PrivateKey)
			line = append([]byte(placeholder), line[end[1]:]...)
		}
		if begun >= 0 {
			switch {
			case keyBegin.Match(line):
				begun = -1 // the end of the previous key is missing
			case end != nil:
				line, begun = append([]byte(placeholder), line[end[1]:]...), -1
			case i-begun > keyLines:
				begun = -1
			default:
				pattern := keyLine
				if i+1 < len(lines) && keyEnd.Match(lines[i+1]) {
					pattern = keyLast
				}
				line = cut(line, pattern)
			}
		}
		for begun < 0 {
			begin := keyBegin.FindIndex(line)
			if begin == nil {
				break
			}
			r.found = append(r.found, PrivateKey)
			after := line[begin[1]:]
			if end := keyEnd.FindIndex(after); end != nil {
				after = after[end[1]:]
			} else {
				n := len(keyRest.Find(after))
				if len(bytes.TrimSpace(after[n:])) == 0 {
					begun = i
				}
				after = after[n:]
			}
			line = append(append(bytes.Clone(line[:begin[0]]), placeholder...), after...)
		}
		lines[i] = line
		out = append(out, line...)
	}
	return out
}

// withoutKey returns the lines before the end of a key without a beginning, and replaces those of the key.
func withoutKey(lines [][]byte, end int) []byte {
	for i := end - 1; i >= 0; i-- {
		pattern := keyLine
		if i == end-1 {
			pattern = keyLast
		}
		cleaned := cut(lines[i], pattern)
		if bytes.Equal(cleaned, lines[i]) {
			break
		}
		lines[i] = cleaned
	}
	return bytes.Join(lines[:end], nil)
}

func cut(line []byte, pattern *regexp.Regexp) []byte {
	m := pattern.FindIndex(line)
	if m == nil {
		return line
	}
	tail := line[len(bytes.TrimRight(line, " \r\n")):]
	return append(append(bytes.Clone(line[:m[0]]), placeholder...), tail...)
}
