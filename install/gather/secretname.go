// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// secretByName returns the kind of secret that the name of a file indicates, or "". secrets-names.txt has names only.
func secretByName(name string) Kind {
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		switch {
		case part == "secrets-names.txt":
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
func gunzip(text []byte, most int) ([]byte, bool) {
	if !isGzip(text) {
		return nil, false
	}
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, false
	}
	unzipped, _ := io.ReadAll(io.LimitReader(reader, int64(most)))
	return unzipped, true
}
