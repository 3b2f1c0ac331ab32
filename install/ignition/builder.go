// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"
	"github.com/vincent-petithory/dataurl"

	"github.com/solonode/sno/render/files"
)

var (
	// ErrConflict is in the error of a path, unit or user that two sources define.
	ErrConflict = errors.New("defined by two sources")
	// ErrInvalid is in the error of a config that Ignition would refuse.
	ErrInvalid = errors.New("not a valid Ignition config")
)

// Builder collects the parts of a config. The zero value is empty. Encode reports all errors.
type Builder struct {
	config types.Config
	// sources has the source of each thing: "path /etc/hosts", "unit kubelet.service", "drop-in kubelet.service
	// 10-x.conf", "user core".
	sources map[string]string
	errs    []error
}

// claim reports whether no other source has the thing, and records the source.
func (b *Builder) claim(source, thing string) bool {
	if other, taken := b.sources[thing]; taken {
		b.errs = append(b.errs, fmt.Errorf("%s: %w: %s and %s", thing, ErrConflict, other, source))
		return false
	}
	if b.sources == nil {
		b.sources = map[string]string{}
	}
	b.sources[thing] = source
	return true
}

func on(p string) string { return path.Clean("/" + p) }

const unitsDir = "/etc/systemd/system"

// thing returns the name under which a path is claimed. Files in the folder of units are units or drop-ins: Ignition
// refuses duplicates between the sections of a config, but does not report their sources.
func thing(p string) string {
	dir, base := path.Split(p)
	dir = path.Clean(dir)
	unit, dropIn := strings.CutSuffix(path.Base(dir), ".d")
	switch {
	case dir == unitsDir && path.Ext(base) != ".d":
		return "unit " + base
	case dropIn && path.Dir(dir) == unitsDir:
		return "drop-in " + unit + " " + base
	default:
		return "path " + p
	}
}

func mode(m fs.FileMode) *int { return util.IntToPtr(int(m.Perm())) }

// AddFile adds a file of root, with a path relative to the root. It replaces a file of the image.
func (b *Builder) AddFile(source string, f files.File) {
	p := on(f.Path)
	if !b.claim(source, thing(p)) {
		return
	}
	b.config.Storage.Files = append(b.config.Storage.Files, types.File{
		Node:          types.Node{Path: p, Overwrite: util.BoolToPtr(true)},
		FileEmbedded1: types.FileEmbedded1{Mode: mode(f.Mode), Contents: contents(f.Content)},
	})
}

// AddDownload adds a file that Ignition downloads and verifies by its SHA-512 sum in hex.
func (b *Builder) AddDownload(source, file string, m fs.FileMode, url, sha512 string) {
	p := on(file)
	if !b.claim(source, thing(p)) {
		return
	}
	b.config.Storage.Files = append(b.config.Storage.Files, types.File{
		Node: types.Node{Path: p, Overwrite: util.BoolToPtr(true)},
		FileEmbedded1: types.FileEmbedded1{Mode: mode(m), Contents: types.Resource{
			Source: &url, Compression: util.StrToPtr(""), Verification: types.Verification{Hash: util.StrToPtr("sha512-" + sha512)},
		}},
	})
}

// AddDir adds a folder with a mode. Ignition creates other folders with mode 0755.
func (b *Builder) AddDir(source, dir string, m fs.FileMode) {
	p := on(dir)
	if !b.claim(source, thing(p)) {
		return
	}
	b.config.Storage.Directories = append(b.config.Storage.Directories, types.Directory{
		Node: types.Node{Path: p}, DirectoryEmbedded1: types.DirectoryEmbedded1{Mode: mode(m)},
	})
}

// AddUnit adds a systemd unit, enabled if it has an [Install] section.
func (b *Builder) AddUnit(source, name, text string) {
	if !b.claim(source, "unit "+name) {
		return
	}
	u := b.unit(name)
	u.Contents = &text
	if hasInstall(text) {
		u.Enabled = util.BoolToPtr(true)
	}
}

// AddDropIn adds a drop-in of a unit, which may be in the image or in another config.
func (b *Builder) AddDropIn(source, unit, name, text string) {
	if !b.claim(source, "drop-in "+unit+" "+name) {
		return
	}
	u := b.unit(unit)
	u.Dropins = append(u.Dropins, types.Dropin{Name: name, Contents: &text})
}

func (b *Builder) unit(name string) *types.Unit {
	units := &b.config.Systemd.Units
	for i := range *units {
		if (*units)[i].Name == name {
			return &(*units)[i]
		}
	}
	*units = append(*units, types.Unit{Name: name})
	return &(*units)[len(*units)-1]
}

func hasInstall(text string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "[Install]" {
			return true
		}
	}
	return false
}

// AddSSHKeys adds SSH keys of a user. Without keys it adds nothing.
func (b *Builder) AddSSHKeys(source, user string, keys []string) {
	if len(keys) == 0 || !b.claim(source, "user "+user) {
		return
	}
	u := types.PasswdUser{Name: user}
	for _, key := range keys {
		u.SSHAuthorizedKeys = append(u.SSHAuthorizedKeys, types.SSHAuthorizedKey(key))
	}
	b.config.Passwd.Users = append(b.config.Passwd.Users, u)
}

// AddKernelArguments adds kernel arguments, which need spec 3.3.0.
func (b *Builder) AddKernelArguments(arguments ...string) {
	for _, a := range arguments {
		b.config.KernelArguments.ShouldExist = append(b.config.KernelArguments.ShouldExist, types.KernelArgument(a))
	}
}

// AddBuilder adds the parts of another Builder.
func (b *Builder) AddBuilder(other *Builder) {
	b.errs = slices.Concat(b.errs, other.errs, conflicts(b, other))
	sources := map[string]string{}
	maps.Copy(sources, other.sources)
	maps.Copy(sources, b.sources)
	b.sources, b.config = sources, merge(b.config, other.config)
}

// AddConfig adds the parts of a config; name is its source.
func (b *Builder) AddConfig(name string, text []byte) error {
	parsed, err := parseWhole(name, text)
	if err != nil {
		return err
	}
	b.AddBuilder(of(name, parsed.config))
	return nil
}

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
