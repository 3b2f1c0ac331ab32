// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"
	"github.com/vincent-petithory/dataurl"
)

// contents returns the shortest of three encodings: text, base64, or compressed. The compression is always set, because
// a merged config would inherit its parent's.
func contents(content []byte) types.Resource {
	source, compression := "data:;base64,"+base64.StdEncoding.EncodeToString(content), ""
	packed := compress(content)
	size := len("data:;base64,") + base64.StdEncoding.EncodedLen(len(packed))
	// Escaping a program is slow, and is skipped if the bytes alone are not shorter.
	if len("data:,")+len(content) <= size {
		// Escaped binary data is longer, with three characters per byte.
		if text := "data:," + dataurl.Escape(content); len(text) <= len(source) {
			source = text
		}
	}
	if size < len(source) {
		source, compression = "data:;base64,"+base64.StdEncoding.EncodeToString(packed), "gzip"
	}
	return types.Resource{Source: &source, Compression: util.StrToPtr(compression)}
}

// compress returns the same bytes for the same content. The best compression would take three times as long and save
// one percent.
func compress(content []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(content); err != nil {
		return content
	}
	if err := w.Close(); err != nil {
		return content
	}
	return packed.Bytes()
}
