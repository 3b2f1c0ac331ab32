// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vincent-petithory/dataurl"
)

// Every content has the shortest of the three encodings. Of two with the same length text comes first, and compressed
// last.
func TestShortest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // of a test
	binary := make([]byte, 4096)
	for i := range binary {
		binary[i] = byte(random.Uint32())
	}
	forms := map[string]func([]byte) string{
		"text":   func(c []byte) string { return "data:," + dataurl.Escape(c) },
		"base64": func(c []byte) string { return "data:;base64," + base64.StdEncoding.EncodeToString(c) },
		"gzip":   func(c []byte) string { return "data:;base64," + base64.StdEncoding.EncodeToString(compress(c)) },
	}
	seen := map[string]bool{}
	for name, content := range map[string][]byte{
		"nothing": nil, "a word": []byte("site"), "escapes": []byte(strings.Repeat("%/: \n", 3)), "binary": binary[:16], "more binary": binary,
		"half binary": append(bytes.Repeat([]byte{0}, 2000), binary[:2000]...), "a long text": []byte(strings.Repeat("a: b\n", 500)),
		"letters": []byte(base64.RawURLEncoding.EncodeToString(binary)), "letters and spaces": []byte(strings.Repeat("Some words, each once: ", 3)),
	} {
		want := "text"
		for _, form := range []string{"base64", "gzip"} {
			if len(forms[form](content)) < len(forms[want](content)) {
				want = form
			}
		}
		seen[want] = true
		got := contentsOf(t, content)
		if got != forms[want](content) {
			t.Errorf("%s: %.40s of %d bytes, want %s of %d", name, got, len(got), want, len(forms[want](content)))
		}
	}
	if len(seen) != 3 {
		t.Errorf("tested encodings: %v", seen)
	}
}

func contentsOf(t *testing.T, content []byte) string {
	t.Helper()
	r := contents(content)
	if packed := *r.Compression == "gzip"; packed != (*r.Source == "data:;base64,"+base64.StdEncoding.EncodeToString(compress(content))) {
		t.Errorf("%.40s has compression %q", *r.Source, *r.Compression)
	}
	return *r.Source
}
