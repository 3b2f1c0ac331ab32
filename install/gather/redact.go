// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
)

// Kind is a kind of secret.
type Kind string

// Kinds of secrets.
const (
	PrivateKey     Kind = "private key"
	Token          Kind = "token"
	Password       Kind = "password"
	PasswordHash   Kind = "password hash"
	PullSecret     Kind = "pull secret"
	SecretData     Kind = "data of a Secret"
	URLCredentials Kind = "credentials in a URL"
	Unchecked      Kind = "encoding that was too large to check"
)

const placeholder = "REDACTED"

// Redact returns the text without secrets, with the same number of lines, and the kinds of what it has removed. From a
// secret on, the rest of its line is replaced; names of fields and Secrets are kept (R-BIP-23). The package's
// documentation says what it recognizes. After the end of the context all text is replaced.
func Redact(ctx context.Context, text []byte) ([]byte, []Kind) {
	return redact(text, func() bool { return ctx.Err() != nil })
}

func redact(text []byte, ended func() bool) ([]byte, []Kind) {
	left := budgetFactor*len(text) + budgetBase
	r := &redactor{ended: ended, left: &left}
	clean := r.redact(text)
	if ended() {
		return append([]byte(placeholder), bytes.Repeat([]byte("\n"), bytes.Count(text, []byte("\n")))...), []Kind{Unchecked}
	}
	slices.Sort(r.found)
	return clean, slices.Compact(r.found)
}

const (
	// The bytes that are decoded for a text: a few nested encodings of all of it. Nested compression multiplies its size,
	// and each byte of base64 can be the first, so without a limit 34 kB took half an hour.
	budgetFactor = 8
	budgetBase   = 256 << 10
	// maxDepth limits nested encodings, such as base64 of gzip in a string of JSON.
	maxDepth = 4
)

type redactor struct {
	ended func() bool
	depth int
	left  *int // bytes that may still be decoded, of all depths
	found []Kind
	lines [][]byte
}

func (r *redactor) redact(text []byte) []byte {
	r.lines = bytes.SplitAfter(text, []byte("\n"))
	r.keys()
	r.objects()
	r.wrapped()
	for i := range r.lines {
		lower := bytes.ToLower(r.lines[i])
		if names(lower) || bytes.Contains(lower, []byte("auth")) {
			r.below(i)
		}
		if at, kind := r.first(r.lines[i], lower); kind != "" {
			r.cut(i, at, kind)
		}
	}
	return bytes.Join(r.lines, nil)
}

// cut replaces the rest of a line, unless that was done before.
func (r *redactor) cut(i, at int, kind Kind) {
	content := bytes.TrimRight(r.lines[i], "\r\n")
	if rest := content[min(at, len(content)):]; len(bytes.TrimSpace(rest)) == 0 || bytes.HasPrefix(rest, []byte(placeholder)) {
		return
	}
	r.found = append(r.found, kind)
	r.lines[i] = slices.Concat(content[:at], []byte(placeholder), r.lines[i][len(content):])
}

// contains returns the kind of a secret in decoded bytes, or "": a key in DER, or a text, which may be compressed or in
// UTF-16.
func (r *redactor) contains(decoded []byte) Kind {
	if isKey(decoded) {
		return PrivateKey
	}
	if isGzip(decoded) {
		decoded = gunzip(decoded, max(*r.left, 0)+1)
	}
	decoded = utf16Text(decoded)
	if r.depth >= maxDepth || len(decoded) == 0 || !isText(decoded) {
		return ""
	}
	if *r.left -= len(decoded); *r.left < 0 || r.ended() {
		return Unchecked
	}
	in := &redactor{ended: r.ended, depth: r.depth + 1, left: r.left}
	if in.redact(decoded); len(in.found) > 0 {
		return in.found[0]
	}
	return ""
}

const (
	secretName = `(?:[\w.-]*(?:token|passwords?|passwd|passphrase|secret|secret[_-]?key|secret[_-]?access[_-]?key|client[_-]?key[_-]?data|` +
		`api[_-]?key|private[_-]?key|password[_-]?hash)|(?:[\w.-]*[_.-])?(?:pass|pwd))`
	// secretValue matches a string of JSON, one inside of a string of JSON, one in single quotes, or a word.
	secretValue = `((?:"(?:[^"\\\n]|\\.)*"|\\+"[^"\\\n]*\\+"|'[^'\n]*'|[^\s"'\\,;&{}\[\]<][^\s"'\\,;&]*))`
)

// pattern matches a secret, which is its last group.
type pattern struct {
	kind Kind
	// has skips lines in lower case, since the expressions are slow.
	has        func(lower []byte) bool
	expression *regexp.Regexp
	// secret decides about a match; nil accepts all.
	secret func(line []byte, groups []int) bool
}

var names = containing("token", "pass", "pwd", "secret", "key")

var patterns = []pattern{
	{Token, containing("authorization"), regexp.MustCompile(`(?i)authorization\\*["']?\s*[:=]\s*\[?\\*["']?(?:(?:basic|bearer|digest|negotiate)\s+)?([^\s"'\\,\]]+)`), nil},
	{Token, containing("cookie:"), regexp.MustCompile(`(?i)\bcookie:\s*(\S.*)`), nil},
	{Token, containing("bearer"), regexp.MustCompile(`(?i)\bbearer\s+([\w.~+/=-]{8,})`), is(looksRandom)},
	{Password, containing("basic "), regexp.MustCompile(`(?i)\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})`), is(isUserAndPassword)},
	{Token, containing("eyj"), regexp.MustCompile(`(eyJ[\w-]{5,}\.(?:eyJ[\w-]{5,}(?:\.[\w-]*)?|[\w-]{10,}\.[\w-]{10,}))`), nil},
	{Token, containing("sha256~"), regexp.MustCompile(`(sha256~[\w-]{20,})`), nil},
	{Token, containing("akia", "asia"), regexp.MustCompile(`\b(A[KS]IA[0-9A-Z]{16})\b`), nil},
	{URLCredentials, containing("://"), regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://([^\s/@"'\\<>]*:[^\s/"'\\<>]*)@`), nil},
	{URLCredentials, containing("http"), regexp.MustCompile(`(?i)\bhttps?://([^\s/@"'\\<>]+)@`), nil},
	{URLCredentials, containing("proxy"), regexp.MustCompile(`(?i)proxy\\*["']?\s*[:=]\s*\\*["']?([^\s/@:"'\\]+:[^\s/"'\\]+)@`), nil},
	{Password, containing("curl"), regexp.MustCompile(`(?i)\bcurl\b.*?\s(?:-u|-U|--user|--proxy-user)[ =]*["']?([^\s"':]+:[^\s"']+)`), nil},
	{Token, containing("."), regexp.MustCompile(`\b([a-z0-9]{6}\.[a-z0-9]{16})\b`), is(hasDigit)}, // of kubeadm
	{Token, containing("gh", "github_pat_", "glpat-", "xox"), regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,})`), nil},
	{PasswordHash, containing("$"), regexp.MustCompile(`(\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2(?:i|d|id)|apr1)\$[\w./$=,+-]{8,})`), nil},
	{Password, containing("-"), regexp.MustCompile(`\b([A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3})\b`), is(isGeneratedPassword)},
	{PullSecret, containing("auth"), regexp.MustCompile(`(?i)\\*["']?\bauth\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9+/_-]{4,}={0,2})`), is(isUserAndPassword)},
	{PullSecret, containing("auth"), regexp.MustCompile(`"auth"\s*:\s*"([^"]+)"`), nil},
	// A line that has only a field, whose value may have spaces.
	{Password, names, regexp.MustCompile(`(?i)^\s*(?:- )?(?:export )?` + secretName + `(?:=|:[ \t]+)([^\s"'\\,;&{}\[\]<>|][^"'\n]*?)\s*$`), is(harmful)},
	{Password, names, regexp.MustCompile(`(?i)\b` + secretName + `\\*["']?[ \t]*([:=]+)[ \t]*` + secretValue), notProse},
	{Password, containing("--"), regexp.MustCompile(`(?i)--` + secretName + `["']?[ \t,]+` + secretValue), is(func(value []byte) bool { return value[0] != '-' && harmful(value) })},
	{Password, names, regexp.MustCompile(`(?i)\b(?:name|key)\\*["']?\s*:\s*\\*["']?` + secretName + `\\*["']?\s*,?\s*\\*["']?value\\*["']?\s*:\s*` + secretValue), is(harmful)},
}

// harmless matches a value that is no secret: a switch, a number, a reference, or none.
var harmless = regexp.MustCompile(`(?i)^\\*["']?(?:|true|false|null|nil|~|none|yes|no|unset|\*+|\.+|x+|[|>][0-9+-]*|\d{1,5}|\d+[smhd]|\$[({]?\w*[)}]?.*)\\*["']?$`)

func harmful(value []byte) bool { return !harmless.Match(value) }

func is(secret func(value []byte) bool) func([]byte, []int) bool {
	return func(line []byte, groups []int) bool { return secret(line[groups[len(groups)-2]:groups[len(groups)-1]]) }
}

// notProse reports whether a value does not continue a sentence, as in "failed to fetch token: connection refused".
func notProse(line []byte, groups []int) bool {
	start, end := groups[len(groups)-2], groups[len(groups)-1]
	plain := !bytes.ContainsAny(line[start:start+1], `"'\`) && line[groups[2]] == ':' && line[start-1] == ' '
	last := len(bytes.TrimSpace(line[end:])) == 0
	return harmful(line[start:end]) && (!plain || last || looksRandom(line[start:end]))
}

// looksRandom reports whether a word is unlikely in a sentence.
func looksRandom(value []byte) bool {
	return len(value) >= 24 || bytes.ContainsAny(value, "0123456789+/=~")
}

func isUserAndPassword(value []byte) bool {
	decoded := decode(value)
	user, password, ok := bytes.Cut(decoded, []byte(":"))
	return ok && len(user) > 0 && len(password) > 0 && isText(decoded)
}

func hasDigit(value []byte) bool { return bytes.ContainsAny(value, "0123456789") }

// isGeneratedPassword reports whether four groups of five characters may be kubeadmin's password: digits and both
// cases, unlike names.
func isGeneratedPassword(value []byte) bool {
	return hasDigit(value) && !bytes.Equal(bytes.ToLower(value), value) && !bytes.Equal(bytes.ToUpper(value), value)
}

var encodings = []struct {
	has        func(lower []byte) bool
	expression *regexp.Regexp
	decode     func(text []byte) [][]byte
}{
	// A string of JSON with escaped line breaks or quotes, which may have a document.
	{containing(`\n`, `\"`), regexp.MustCompile(`"(?:[^"\\\n]|\\.)*\\(?:n|")(?:[^"\\\n]|\\.)*"`), func(text []byte) [][]byte {
		var decoded string
		_ = json.Unmarshal(text, &decoded) // other strings are no JSON
		return [][]byte{[]byte(decoded)}
	}},
	// A percent-encoded word, such as the content of a data URL.
	{containing("%"), regexp.MustCompile(`[^\s"'<>\\%]*(?:%[0-9A-Fa-f]{2}[^\s"'<>\\%]*){3,}`), func(text []byte) [][]byte {
		decoded, _ := url.PathUnescape(string(text)) // "" for another text
		return [][]byte{[]byte(decoded)}
	}},
	// Hexadecimal, of which digests are shorter.
	{hasRun, regexp.MustCompile(`(?:[0-9a-f]{2}){48,}|(?:[0-9A-F]{2}){48,}`), func(text []byte) [][]byte {
		decoded := make([]byte, len(text)/2)
		_, _ = hex.Decode(decoded, text) // it is hexadecimal
		return [][]byte{decoded}
	}},
	// Base64, such as a value of a Secret, or a compressed file in an Ignition config. Up to three letters may precede it,
	// such as the n of an escaped line break.
	{hasRun, regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`), func(text []byte) [][]byte {
		return [][]byte{decode(text), decode(text[1:]), decode(text[2:]), decode(text[3:])}
	}},
}

// containing returns whether a line has one of the words.
func containing(words ...string) func(lower []byte) bool {
	return func(lower []byte) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(lower, []byte(w)) })
	}
}

// hasRun reports whether a line has an encoding that is long enough for a secret.
func hasRun(lower []byte) bool {
	run := 0
	for _, c := range lower {
		if run++; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' {
			run = 0
		}
		if run == 40 {
			return true
		}
	}
	return false
}

// first returns where the first secret of a line begins, and its kind.
func (r *redactor) first(line, lower []byte) (at int, kind Kind) {
	found := func(start int, of Kind) {
		if kind == "" || start < at {
			at, kind = start, of
		}
	}
	for _, p := range patterns {
		if !p.has(lower) {
			continue
		}
		for _, m := range p.expression.FindAllSubmatchIndex(line, -1) {
			start := m[len(m)-2]
			if !bytes.HasPrefix(line[start:], []byte(placeholder)) && (p.secret == nil || p.secret(line, m)) {
				found(start, p.kind)
				break
			}
		}
	}
	for _, e := range encodings {
		if !e.has(lower) {
			continue
		}
		for _, m := range e.expression.FindAllIndex(line, -1) {
			if kind != "" && m[0] >= at {
				break // it is replaced anyway
			}
			for _, decoded := range e.decode(line[m[0]:m[1]]) {
				if of := r.contains(decoded); of != "" {
					found(m[0], of)
				}
			}
		}
	}
	return at, kind
}
