// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// secretByName returns the kind of secret that the name of a file indicates, or "". secrets.txt has names only.
func secretByName(name string) Kind {
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		switch {
		case part == secretNames:
		case strings.HasSuffix(part, ".key"), part == "id_rsa", part == "id_ecdsa", part == "id_ed25519":
			return PrivateKey
		case strings.Contains(part, "kubeconfig"), part == ".kube":
			return Token
		case strings.Contains(part, "pull-secret"), part == ".docker", part == ".dockerconfigjson":
			return PullSecret
		case strings.Contains(part, "secret"):
			return SecretData
		case strings.Contains(part, "password"), part == "shadow", part == "htpasswd":
			return Password
		case strings.HasSuffix(part, ".ign"), strings.HasSuffix(part, ".db"):
			return SecretData // an Ignition config or a database has all of them
		}
	}
	return ""
}

func isGzip(text []byte) bool { return bytes.HasPrefix(text, []byte{0x1f, 0x8b}) }

func isTar(text []byte) bool { return len(text) > 262 && string(text[257:262]) == "ustar" }

// gunzip decompresses as much as it can, up to a number of bytes.
func gunzip(text []byte, most int) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	unzipped, _ := io.ReadAll(io.LimitReader(reader, int64(most)))
	return unzipped
}

// isKey reports whether the bytes begin with a private key in DER.
func isKey(der []byte) bool {
	const sequence = 0x30
	var first asn1.RawValue
	if len(der) == 0 || der[0] != sequence {
		return false
	}
	if _, err := asn1.Unmarshal(der, &first); err != nil {
		return false
	}
	_, err := x509.ParsePKCS8PrivateKey(first.FullBytes)
	if err != nil {
		_, err = x509.ParsePKCS1PrivateKey(first.FullBytes)
	}
	if err != nil {
		_, err = x509.ParseECPrivateKey(first.FullBytes)
	}
	return err == nil
}

// utf16Text decodes UTF-16 of mostly ASCII, in either order of bytes, and returns other text as it is.
func utf16Text(b []byte) []byte {
	head := b[:min(len(b), 512)]
	if zeros := bytes.Count(head, []byte{0}); len(head) < 8 || zeros < len(head)*2/5 || zeros > len(head)*3/5 {
		return b
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0 || b[0] == 0xfe {
		order = binary.BigEndian
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff"))
}

// decode decodes base64 of either alphabet, as far as it is some.
func decode(run []byte) []byte {
	run = bytes.TrimRight(run, "=")
	run = bytes.ReplaceAll(bytes.ReplaceAll(run, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(run)))
	n, _ := base64.RawStdEncoding.Decode(decoded, run)
	return decoded[:n]
}

// isText reports whether the beginning is text. The end may be half a character.
func isText(b []byte) bool {
	b = b[:min(len(b), 512)]
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		if c == utf8.RuneError && len(b) >= utf8.UTFMax || c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != 0x1b {
			return false
		}
		b = b[size:]
	}
	return true
}
