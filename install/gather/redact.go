// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
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
	Unchecked      Kind = "encoding that was too large to check"
)

const placeholder = "REDACTED"

// maxDepth limits nested encodings, such as base64 of gzip in a string of JSON.
const maxDepth = 4

// Redact returns the text without secrets, with the same number of lines, and the kinds of what it has replaced. It
// keeps the names of fields and Secrets, and may replace harmless words (R-BIP-23). The package's documentation says
// what it recognizes. After the end of the context all text is replaced.
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

// The bytes that are decoded for a text: a few nested encodings of all of it. Nested compression multiplies its size,
// and each byte of base64 can be the first, so without a limit 34 kB took half an hour.
const (
	budgetFactor = 8
	budgetBase   = 256 << 10
)

// redactor replaces secrets in several passes, none of which changes the number of lines.
type redactor struct {
	ended func() bool
	depth int
	left  *int // bytes that may still be decoded, of all depths
	found []Kind
}

// redact runs all passes. Encoded text comes first, because the patterns for plain text would break the encoding.
func (r *redactor) redact(text []byte) []byte {
	text = r.jsonStrings(text)
	text = r.privateKeys(text)
	text = r.jsonSecrets(text)
	text = r.yamlSecrets(text)
	text = r.percentEncoded(text)
	text = r.hexEncoded(text)
	text = r.base64Encoded(text)
	for _, p := range patterns {
		text = r.pattern(text, p)
	}
	return r.fields(r.nextLine(text))
}

// nextLine replaces a value of JSON that is on the line after its name.
func (r *redactor) nextLine(text []byte) []byte {
	var edits []edit
	for _, m := range valueOnNextLine.FindAllSubmatchIndex(text, -1) {
		if !isPlaceholder(text[m[2]:m[3]]) {
			edits = append(edits, edit{m[2], m[3], Password, placeholder})
		}
	}
	return r.replace(text, edits)
}

var valueOnNextLine = regexp.MustCompile(`(?i)"(?:auth|` + secretName + `)"[ \t]*(?:\r?\n\s*)?:\s*?\r?\n\s*"((?:[^"\\\n]|\\.)+)"`)

// inner redacts decoded text, and returns the kinds of secrets in it.
func (r *redactor) inner(decoded []byte) ([]byte, []Kind) {
	if r.depth >= maxDepth || len(decoded) == 0 {
		return decoded, nil
	}
	if *r.left -= len(decoded); *r.left < 0 || r.ended() {
		return []byte(placeholder), []Kind{Unchecked}
	}
	in := &redactor{ended: r.ended, depth: r.depth + 1, left: r.left}
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
	{URLCredentials, []string{"://"}, regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://([^\s/@"'\\<>]*:[^\s/"'\\<>]*)@`), nil},
	{URLCredentials, []string{"http"}, regexp.MustCompile(`(?i)\bhttps?://([^\s/@"'\\<>]+)@`), nil},
	{URLCredentials, []string{"proxy"}, regexp.MustCompile(`(?i)proxy\\*["']?\s*[:=]\s*\\*["']?([^\s/@:"'\\]+:[^\s/"'\\]+)@`), nil},
	{Password, []string{"curl"}, regexp.MustCompile(`(?i)\bcurl\b.*?\s(?:-u|-U|--user|--proxy-user)[ =]*["']?([^\s"':]+:[^\s"']+)`), nil},
	{Token, []string{"."}, regexp.MustCompile(`\b([a-z0-9]{6}\.[a-z0-9]{16})\b`), isBootstrapToken},
	{Token, []string{"gh", "github_pat_", "glpat-", "xox"}, regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,})`), nil},
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

// isBootstrapToken reports whether a word is not only letters, as a token of kubeadm nearly never is.
func isBootstrapToken(value []byte) bool { return bytes.ContainsAny(value, "0123456789") }

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
		if kind := r.containsSecret(decode(run[offset:])); kind != "" {
			return kind
		}
	}
	return ""
}

// containsSecret returns the kind of a secret in decoded bytes, or "": a key in DER, or a text, which may be compressed
// or in UTF-16.
func (r *redactor) containsSecret(decoded []byte) Kind {
	if isKey(decoded) {
		return PrivateKey
	}
	if isGzip(decoded) {
		if *r.left <= 0 {
			return Unchecked
		}
		decoded, _ = gunzip(decoded, *r.left+1)
	}
	if text, is := utf16Text(decoded); is {
		decoded = text
	}
	if !isText(decoded) {
		return ""
	}
	if _, found := r.inner(decoded); len(found) > 0 {
		return found[0]
	}
	return ""
}

// isKey reports whether the bytes begin with a private key in DER.
func isKey(der []byte) bool {
	if len(der) == 0 || der[0] != asn1Sequence {
		return false
	}
	var first asn1.RawValue
	if _, err := asn1.Unmarshal(der, &first); err != nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(first.FullBytes); err == nil {
		return true
	}
	if _, err := x509.ParsePKCS1PrivateKey(first.FullBytes); err == nil {
		return true
	}
	_, err := x509.ParseECPrivateKey(first.FullBytes)
	return err == nil
}

const asn1Sequence = 0x30

// utf16Text decodes UTF-16 of mostly ASCII, in either order of bytes.
func utf16Text(b []byte) ([]byte, bool) {
	head := b[:min(len(b), 512)]
	if zeros := bytes.Count(head, []byte{0}); len(head) < 8 || zeros < len(head)*2/5 || zeros > len(head)*3/5 {
		return nil, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0 || b[0] == 0xfe {
		order = binary.BigEndian
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")), true
}

// hexadecimal matches an encoding in hexadecimal, of which digests are shorter.
var hexadecimal = regexp.MustCompile(`(?:[0-9a-f]{2}){48,}|(?:[0-9A-F]{2}){48,}`)

func (r *redactor) hexEncoded(text []byte) []byte {
	var edits []edit
	for _, m := range hexadecimal.FindAllIndex(text, -1) {
		decoded := make([]byte, (m[1]-m[0])/2)
		if _, err := hex.Decode(decoded, text[m[0]:m[1]]); err != nil {
			continue
		}
		if kind := r.containsSecret(decoded); kind != "" {
			edits = append(edits, edit{m[0], m[1], kind, placeholder})
		}
	}
	return r.replace(text, edits)
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
