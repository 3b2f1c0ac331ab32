// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"unicode/utf8"
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
)

const placeholder = "REDACTED"

// maxDepth limits nested encodings, such as base64 of gzip in a string of JSON.
const maxDepth = 4

// Redact returns the text without secrets, with the same number of lines, and the kinds of what it has replaced. It
// keeps the names of fields and Secrets, and may replace harmless words (R-BIP-23).
func Redact(text []byte) ([]byte, []Kind) {
	r := &redactor{}
	clean := r.redact(text)
	slices.Sort(r.found)
	return clean, slices.Compact(r.found)
}

// redactor replaces secrets in several passes, none of which changes the number of lines.
type redactor struct {
	depth int
	found []Kind
}

// redact runs all passes. Encoded text comes first, because the patterns for plain text would break the encoding.
func (r *redactor) redact(text []byte) []byte {
	text = r.jsonStrings(text)
	text = r.privateKeys(text)
	text = r.jsonSecrets(text)
	text = r.yamlSecrets(text)
	text = r.percentEncoded(text)
	text = r.base64Encoded(text)
	for _, p := range patterns {
		text = r.pattern(text, p)
	}
	return r.fields(text)
}

// inner redacts decoded text, and returns the kinds of secrets in it.
func (r *redactor) inner(decoded []byte) ([]byte, []Kind) {
	if r.depth >= maxDepth || len(decoded) == 0 {
		return decoded, nil
	}
	in := &redactor{depth: r.depth + 1}
	clean := in.redact(decoded)
	return clean, in.found
}

func (r *redactor) replace(text []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return text
	}
	var out []byte
	last := 0
	for _, e := range edits {
		r.found = append(r.found, e.kind)
		out = append(append(out, text[last:e.start]...), e.with...)
		last = e.end
	}
	return append(out, text[last:]...)
}

type edit struct {
	start, end int
	kind       Kind
	with       string
}

type pattern struct {
	kind Kind
	// words are in lower case. Lines with none of them are skipped, since the expressions are slow.
	words      []string
	expression *regexp.Regexp
	secret     func(value []byte) bool
}

var patterns = []pattern{
	{Token, []string{"authorization"}, regexp.MustCompile(`(?i)authorization\\*["']?\s*[:=]\s*\[?\\*["']?(?:(?:basic|bearer|digest|negotiate)\s+)?([^\s"'\\,\]]+)`), nil},
	{Token, []string{"cookie:"}, regexp.MustCompile(`(?i)\bcookie:\s*(\S.*)`), nil},
	{Token, []string{"bearer"}, regexp.MustCompile(`(?i)\bbearer\s+([\w.~+/=-]{8,})`), looksRandom},
	{Password, []string{"basic "}, regexp.MustCompile(`(?i)\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})`), isUserAndPassword},
	{Token, []string{"eyj"}, regexp.MustCompile(`(eyJ[\w-]{5,}\.(?:eyJ[\w-]{5,}(?:\.[\w-]*)?|[\w-]{10,}\.[\w-]{10,}))`), nil},
	{Token, []string{"sha256~"}, regexp.MustCompile(`(sha256~[\w-]{20,})`), nil},
	{Token, []string{"akia", "asia"}, regexp.MustCompile(`\b(A[KS]IA[0-9A-Z]{16})\b`), nil},
	{URLCredentials, []string{"://"}, regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://([^\s/@"'\\<>]*:[^\s/@"'\\<>]*)@`), nil},
	{URLCredentials, []string{"http"}, regexp.MustCompile(`(?i)\bhttps?://([^\s/@"'\\<>]+)@`), nil},
	{URLCredentials, []string{"proxy"}, regexp.MustCompile(`(?i)proxy\\*["']?\s*[:=]\s*\\*["']?([^\s/@:"'\\]+:[^\s/@"'\\]+)@`), nil},
	{PasswordHash, []string{"$"}, regexp.MustCompile(`(\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2(?:i|d|id)|apr1)\$[\w./$=,+-]{8,})`), nil},
	{Password, []string{"-"}, regexp.MustCompile(`\b([A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3})\b`), isGeneratedPassword},
	{PullSecret, []string{"auth"}, regexp.MustCompile(`(?i)\\*["']?\bauth\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9+/_-]{4,}={0,2})`), isUserAndPassword},
	{PullSecret, []string{"auth"}, regexp.MustCompile(`"auth"\s*:\s*"([^"]+)"`), nil},
}

func (r *redactor) pattern(text []byte, p pattern) []byte {
	return r.lines(text, p.words, func(line []byte) []edit {
		var edits []edit
		for _, m := range p.expression.FindAllSubmatchIndex(line, -1) {
			value := line[m[2]:m[3]]
			if !isPlaceholder(value) && (p.secret == nil || p.secret(value)) {
				edits = append(edits, edit{m[2], m[3], p.kind, placeholder})
			}
		}
		return edits
	})
}

// lines calls find for each line with one of the words, in any case.
func (r *redactor) lines(text []byte, words []string, find func(line []byte) []edit) []byte {
	var edits []edit
	start := 0
	for line := range bytes.Lines(text) {
		lower := bytes.ToLower(line)
		if slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(lower, []byte(w)) }) {
			for _, e := range find(line) {
				e.start, e.end = e.start+start, e.end+start
				edits = append(edits, e)
			}
		}
		start += len(line)
	}
	return r.replace(text, edits)
}

func isPlaceholder(value []byte) bool {
	return bytes.Equal(bytes.TrimSpace(value), []byte(placeholder))
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

// isGeneratedPassword reports whether four groups of five characters may be kubeadmin's password: digits and both
// cases, unlike names.
func isGeneratedPassword(value []byte) bool {
	return bytes.ContainsAny(value, "0123456789") && bytes.ContainsAny(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
		bytes.ContainsAny(value, "abcdefghijklmnopqrstuvwxyz")
}

// jsonString matches a string of JSON with escaped line breaks or quotes, which may have a document.
var jsonString = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*\\(?:n|")(?:[^"\\\n]|\\.)*"`)

func (r *redactor) jsonStrings(text []byte) []byte {
	var edits []edit
	for _, m := range jsonString.FindAllIndex(text, -1) {
		var decoded string
		if json.Unmarshal(text[m[0]:m[1]], &decoded) != nil {
			continue
		}
		clean, found := r.inner([]byte(decoded))
		if len(found) == 0 {
			continue
		}
		var quoted bytes.Buffer
		encoder := json.NewEncoder(&quoted)
		encoder.SetEscapeHTML(false)
		if encoder.Encode(string(clean)) != nil {
			continue
		}
		edits = append(edits, edit{m[0], m[1], found[0], string(bytes.TrimSpace(quoted.Bytes()))})
	}
	return r.replace(text, edits)
}

// percent matches a percent-encoded word, such as the content of a data URL.
var percent = regexp.MustCompile(`[^\s"'<>\\%]*(?:%[0-9A-Fa-f]{2}[^\s"'<>\\%]*){3,}`)

func (r *redactor) percentEncoded(text []byte) []byte {
	return r.lines(text, []string{"%"}, func(line []byte) []edit {
		var edits []edit
		for _, m := range percent.FindAllIndex(line, -1) {
			decoded, err := url.PathUnescape(string(line[m[0]:m[1]]))
			if err != nil {
				continue
			}
			if _, found := r.inner([]byte(decoded)); len(found) > 0 {
				edits = append(edits, edit{m[0], m[1], found[0], placeholder})
			}
		}
		return edits
	})
}

const (
	// shortest is the minimum length of an encoding that is decoded.
	shortest = 40
	// wrapped is the minimum length of a line that continues in the next one.
	wrapped = 60
)

// base64Encoded replaces encodings with a secret in them, such as a value of a Secret, a kubeconfig in a MachineConfig,
// or a compressed file in an Ignition config.
func (r *redactor) base64Encoded(text []byte) []byte {
	var edits []edit
	for i := 0; i < len(text); {
		if !isBase64(text[i]) {
			i++
			continue
		}
		runs := encoded(text, i)
		last := runs[len(runs)-1]
		i = max(last[1], i+1)
		if len(runs) > 1 {
			if kind := r.encodesSecret(join(text, runs)); kind != "" {
				for _, run := range runs {
					edits = append(edits, edit{run[0], run[1], kind, placeholder})
				}
				continue
			}
		}
		for _, run := range runs {
			if kind := r.encodesSecret(text[run[0]:run[1]]); kind != "" {
				edits = append(edits, edit{run[0], run[1], kind, placeholder})
			}
		}
	}
	return r.replace(text, edits)
}

// encoded returns the run of base64 at i, and its continuations on the next lines.
func encoded(text []byte, i int) [][2]int {
	var runs [][2]int
	for {
		end := i
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		for end < len(text) && text[end] == '=' {
			end++
		}
		runs = append(runs, [2]int{i, end})
		next := end
		if end-i < wrapped || text[end-1] == '=' || next >= len(text) || text[next] != '\n' && text[next] != '\r' {
			return runs
		}
		for next < len(text) && (text[next] == '\n' || text[next] == '\r' || text[next] == ' ' || text[next] == '\t') {
			next++
		}
		if next >= len(text) || !isBase64(text[next]) {
			return runs
		}
		// The line must have nothing else.
		rest := text[next:]
		if eol := bytes.IndexByte(rest, '\n'); eol >= 0 {
			rest = rest[:eol]
		}
		rest = bytes.TrimRight(rest, " \r=")
		if slices.ContainsFunc(rest, func(c byte) bool { return !isBase64(c) }) {
			return runs
		}
		i = next
	}
}

func join(text []byte, runs [][2]int) []byte {
	var joined []byte
	for _, run := range runs {
		joined = append(joined, text[run[0]:run[1]]...)
	}
	return joined
}

// encodesSecret returns the kind of a secret in the encoding, or "". Up to three letters may precede it, such as the n
// of an escaped line break.
func (r *redactor) encodesSecret(run []byte) Kind {
	if len(run) < shortest {
		return ""
	}
	for offset := range 4 {
		decoded := decode(run[offset:])
		if unzipped, ok := gunzip(decoded); ok {
			decoded = unzipped
		}
		if !isText(decoded) {
			continue
		}
		if _, found := r.inner(decoded); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

func decode(run []byte) []byte {
	run = bytes.TrimRight(run, "=")
	run = bytes.ReplaceAll(bytes.ReplaceAll(run, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
	run = run[:len(run)-len(run)%4+map[int]int{2: 2, 3: 3}[len(run)%4]]
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(run)))
	n, _ := base64.RawStdEncoding.Decode(decoded, run)
	return decoded[:n]
}

// isText reports whether the beginning is text. The end may be half a character.
func isText(b []byte) bool {
	if len(b) > 512 {
		b = b[:512]
	}
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		if c == utf8.RuneError && len(b) >= utf8.UTFMax || c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != 0x1b {
			return false
		}
		b = b[size:]
	}
	return true
}
