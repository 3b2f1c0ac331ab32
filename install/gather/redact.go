// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"math"
	"regexp"
	"slices"
)

const (
	placeholder = "REDACTED"
	none        = math.MaxInt // where the first secret of a line without any begins
	// budget limits how many bytes of a text are searched, and so the time. The rest of the text is replaced.
	budget = 64 << 20
)

var (
	journalPrefix = regexp.MustCompile(`^\S.{0,80}?\[\d+\]: `)
	indentation   = regexp.MustCompile(`^[ \t]*(?:- )?`)
	onlyBase64    = regexp.MustCompile(`^[A-Za-z0-9+/][\w+/-]*={0,2}\s*$`)
	secretKind    = regexp.MustCompile(`kind\\*["']?\s*[:=]\s*\\*["']?Secret(?:List)?\b`)
)

// Redact returns the text without secrets, with the same number of lines. From a secret on, the rest of its line is
// replaced, and so are lines below that may be a part of it: those that are indented deeper, or have base64 only. The
// package's documentation says what it recognizes.
func Redact(text []byte) []byte { return redact(text, budget) }

func redact(text []byte, budget int) []byte {
	hasSecret := secretKind.Match(text)
	secretName := false // the line above is the name of a secret variable
	below := -1         // the indentation of the secret above, or -1
	clean := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		content := bytes.TrimRight(line, "\r\n")
		prefix := len(journalPrefix.Find(content))
		start := prefix + len(indentation.Find(content[prefix:]))
		indent, cut := start-prefix, len(content)
		switch budget -= len(line); {
		case budget < 0:
			cut = 0
		case len(bytes.TrimSpace(content[start:])) == 0: // an empty line ends no block
		case below >= 0 && (indent > below || onlyBase64.Match(content[start:])):
			cut = start
		default:
			below = -1
			if at := first(content[start:], hasSecret, secretName); at != none {
				cut, below = start+at, indent
			}
			secretName = variableName.Match(content[start:])
		}
		clean = append(clean, content[:cut]...)
		if cut < len(content) {
			clean = append(clean, placeholder...)
		}
		clean = append(clean, line[len(content):]...)
	}
	return clean
}

// first returns where the first secret of a line begins.
func first(line []byte, hasSecret, secretName bool) int {
	at := none
	if m := variableValue.FindIndex(line); secretName && m != nil {
		at = m[1]
	}
	if m := dataField.FindIndex(line); hasSecret && m != nil {
		at = min(at, m[1])
	}
	lower := bytes.ToLower(line)
	for _, p := range patterns {
		if !slices.ContainsFunc(p.words, func(word string) bool { return bytes.Contains(lower, []byte(word)) }) {
			continue
		}
		for _, m := range p.expression.FindAllSubmatchIndex(line, -1) {
			if p.secret == nil || p.secret(line, m) {
				at = min(at, m[len(m)-1])
				break
			}
		}
	}
	return at
}

const (
	name = `(?:tokens?|passw(?:or)?ds?|passphrase|secrets?|(?:private|secret|access|api)[_-]?key|client[_-]?key[_-]?data|password[_-]?hash|` +
		`(?:\b|[_.-])(?:pass|pwd|auth))`
	quote = `\\*["']?`
	field = quote + `\s*[:=]+\s*`
)

var (
	dataField     = regexp.MustCompile(`(?:^|[\s"'{,\\-])(?:data|stringData)` + field)
	variableName  = regexp.MustCompile(`(?i)\b(?:name|key)` + field + quote + `[\w.-]*` + name + quote + `,?\s*$`)
	variableValue = regexp.MustCompile(`(?i)^` + quote + `value` + field)
	// harmless matches a value that is no secret: a switch, a small number, a variable, or none.
	harmless  = regexp.MustCompile(`(?i)^` + quote + `(?:true|false|null|nil|~|none|yes|no|[*.x]+|\d{1,3}|\$[({]\w+[)}]|[{\[]+)` + quote + `(?:[\s,;&}\])]|$)|^(?:\\*["']){2}`)
	upperCase = regexp.MustCompile(`[A-Z]`)
	// sentence matches what may follow a colon in a message, as in "failed to fetch token: connection refused".
	sentence = regexp.MustCompile(`^["']?[A-Za-z']+[\s,:]+\S`)
)

// patterns match what precedes a secret, or one itself. It begins at the end of the last group.
var patterns = []struct {
	words      []string // a line in lower case that has none of them is skipped, since the expressions are slow
	expression *regexp.Regexp
	secret     func(line []byte, groups []int) bool // decides about a match; nil accepts all
}{
	// A field or a variable, and a variable of a pod on one line.
	{[]string{"token", "pass", "pwd", "secret", "key", "auth"}, regexp.MustCompile(`(?i)(\w )?[\w.*-]*` + name + `(` + field + `|` + quote + `,?\s*` + quote + `value` + field + `)`), isValue},
	{[]string{"--"}, regexp.MustCompile(`(?i)(--[\w.-]*` + name + quote + `[\s,]+)[^\s-]`), isValue},
	{[]string{"authorization", "cookie"}, regexp.MustCompile(`(?i)(\b(?:authorization|cookie)` + field + `)`), nil},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)(?:[\w.~+/-]*[\d=+/]|[\w.-]{24})`), nil},
	{[]string{"@"}, regexp.MustCompile(`(?i)(://|proxy` + field + quote + `)[^\s/"'\\<>]+@`), nil},
	{[]string{"curl"}, regexp.MustCompile(`(?i)(\bcurl\b.*?\s(?:-u|--user|--proxy-user)[ =]*["']?)[^\s"':]+:`), nil},
	{[]string{"data:"}, regexp.MustCompile(`(\bdata:[\w/;=.+-]*,)`), nil}, // a file in an Ignition config
	{[]string{"private"}, regexp.MustCompile(`()-----BEGIN[\w% ]*PRIVATE`), nil},
	{[]string{"eyj"}, regexp.MustCompile(`()eyJ[\w-]{5,}\.[\w-]{5}`), nil},
	{[]string{"sha256~", "gh", "github_pat_", "glpat-", "xox", "akia", "asia"}, regexp.MustCompile(`()(?:sha256~[\w-]{20}|\b(?:gh[pousr]_\w{30}|github_pat_\w{20}|glpat-[\w-]{20}|xox[abprs]-[\w-]{10}|A[KS]IA[0-9A-Z]{16}\b))`), nil},
	{[]string{"."}, regexp.MustCompile(`()\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), nil}, // of kubeadm
	{[]string{"$"}, regexp.MustCompile(`()\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2(?:i|d|id)|apr1)\$[\w./$=,+-]{8}`), nil},
	// Base64 or hexadecimal that is longer than a digest, and the password of kubeadmin.
	{[]string{""}, regexp.MustCompile(`()[\w+/-]{40,}`), isRandom},
	{[]string{"-"}, regexp.MustCompile(`()\b[A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3}\b`), isRandom},
}

// isValue reports whether a secret follows a name. One at the end of the line may be on the next.
func isValue(line []byte, groups []int) bool {
	value := line[groups[len(groups)-1]:]
	message := groups[2] >= 0 && bytes.Equal(line[groups[len(groups)-2]:groups[len(groups)-1]], []byte(": "))
	return !harmless.Match(value) && (!message || !sentence.Match(value))
}

// isRandom reports whether a word is no name: it is very long, or has digits and many capitals.
func isRandom(line []byte, groups []int) bool {
	word := line[groups[0]:groups[1]]
	return len(word) > 128 || len(upperCase.FindAll(word, -1)) >= len(word)/16 && bytes.ContainsAny(word, "0123456789")
}
