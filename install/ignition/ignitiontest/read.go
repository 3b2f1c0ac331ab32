// SPDX-License-Identifier: Apache-2.0

package ignitiontest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"testing"

	"github.com/vincent-petithory/dataurl"

	"github.com/solonode/sno/install/internal/fixture"
)

// Read returns the files and folders of a config by path, and the texts of enabled units by name. The content of a
// downloaded file is its URL.
func Read(t testing.TB, text []byte) (entries map[string]Entry, units map[string]string) {
	t.Helper()
	type entry struct {
		Path     string
		Mode     fs.FileMode
		Contents struct{ Source, Compression string }
	}
	var c struct {
		Storage struct{ Files, Directories []entry }
		Systemd struct {
			Units []struct {
				Name, Contents string
				Enabled        bool
			}
		}
	}
	fixture.NoError(t, json.Unmarshal(text, &c))
	entries, units = map[string]Entry{}, map[string]string{}
	for _, f := range c.Storage.Files {
		content, err := content(f.Contents.Source, f.Contents.Compression)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		entries[f.Path] = Entry{Mode: f.Mode, Content: content}
	}
	for _, d := range c.Storage.Directories {
		entries[d.Path] = Entry{Mode: fs.ModeDir | d.Mode}
	}
	for _, u := range c.Systemd.Units {
		if u.Enabled {
			units[u.Name] = u.Contents
		}
	}
	return entries, units
}

func content(source, compression string) (string, error) {
	url, err := dataurl.DecodeString(source)
	if err != nil {
		return source, nil //nolint:nilerr // it is an address
	}
	if compression != "gzip" {
		return string(url.Data), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(url.Data))
	if err != nil {
		return "", err //nolint:wrapcheck // of the test
	}
	text, err := io.ReadAll(r)
	return string(text), err //nolint:wrapcheck // of the test
}
