// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/kdomanski/iso9660"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/internal/fixture"
)

const capacity = 256 << 10

func image(t testing.TB, content map[string][]byte) string {
	t.Helper()
	w := fixture.Must(iso9660.NewWriter())
	defer w.Cleanup() //nolint:errcheck // of the test
	for path, data := range content {
		fixture.NoError(t, w.AddFile(bytes.NewReader(data), path))
	}
	file := fixture.Must(os.Create(filepath.Join(t.TempDir(), "live.iso")))
	fixture.NoError(t, errors.Join(w.WriteTo(file, "live"), file.Close()))
	return file.Name()
}

func live(t *testing.T) string {
	return image(t, map[string][]byte{
		"images/ignition.img": make([]byte, capacity), "coreos/igninfo.json": []byte(`{"file": "images/ignition.img"}`), "README": []byte("a live system"),
	})
}

func config(t *testing.T, size int) []byte {
	t.Helper()
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	var b ignition.Builder
	b.AddFile("test", files.File{Path: "etc/small"})
	b.AddFile("test", files.File{Path: "usr/local/bin/program", Content: random})
	return fixture.Must(b.Encode())
}

// members parses a newc archive according to the kernel's documentation, without the library that wrote it.
func members(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unpacked := fixture.Must(gzip.NewReader(bytes.NewReader(packed)))
	unpacked.Multistream(false)
	data := fixture.Must(io.ReadAll(unpacked))
	found := map[string]string{}
	for at := 0; ; {
		header := string(data[at : at+110])
		field := func(i int) int {
			n := fixture.Must(strconv.ParseInt(header[6+8*i:14+8*i], 16, 64))
			return int(n)
		}
		if header[:6] != "070701" {
			t.Fatalf("magic %q", header[:6])
		}
		size, nameSize := field(6), field(11)
		name := string(data[at+110 : at+110+nameSize-1])
		at = (at + 110 + nameSize + 3) &^ 3
		if name == "TRAILER!!!" {
			return found
		}
		if mode := field(1); mode != 0o100644 {
			t.Errorf("mode of %s: %o", name, mode)
		}
		found[name] = string(data[at : at+size])
		at = (at + size + 3) &^ 3
	}
}

// Only the area changes, and its content is what coreos-installer reads (R-BIP-5, U-INS-18).
func TestEmbed(t *testing.T) {
	text := config(t, 1000)
	pad := bytes.Repeat([]byte("x"), 100)
	old := func(t *testing.T) string {
		path := image(t, map[string][]byte{"data/area.bin": make([]byte, capacity)})
		content := fixture.Must(os.ReadFile(path))
		// The file's offset is that of the only zeros of that length.
		offset := bytes.LastIndex(content, make([]byte, capacity))
		header := append([]byte("coreiso+"), make([]byte, 16)...)
		binary.LittleEndian.PutUint64(header[8:], uint64(offset)) //nolint:gosec // of the test
		binary.LittleEndian.PutUint64(header[16:], capacity)
		copy(content[32744:], header)
		fixture.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	for name, in := range map[string]string{
		"igninfo.json":     live(t),
		"images only":      image(t, map[string][]byte{"images/ignition.img": make([]byte, capacity)}),
		"part of a file":   image(t, map[string][]byte{"images/initrd.img": append(append(bytes.Clone(pad), make([]byte, capacity)...), 1, 2, 3), "coreos/igninfo.json": fmt.Appendf(nil, `{"file":"images/initrd.img","offset":%d,"length":%d}`, len(pad), capacity)}),
		"header of old":    old(t),
		"eight and three":  image(t, map[string][]byte{"IMAGES/IGNITION.IMG": make([]byte, capacity), "COREOS/IGNINFO.JSO": []byte(`{"file": "images/ignition.img"}`)}),
		"elsewhere in ISO": image(t, map[string][]byte{"boot/deep/area.img": make([]byte, capacity), "coreos/igninfo.json": []byte(`{"file": "boot/deep/area.img"}`)}),
	} {
		t.Run(name, func(t *testing.T) {
			before := fixture.Must(os.ReadFile(in))
			out := filepath.Join(t.TempDir(), "out.iso")
			fixture.NoError(t, Embed(in, out, text))
			after := fixture.Must(os.ReadFile(out))
			if again, _ := os.ReadFile(in); !bytes.Equal(again, before) {
				t.Error("the input has changed")
			}
			if len(after) != len(before) {
				t.Fatalf("%d bytes, and the input %d", len(after), len(before))
			}
			first, last := -1, -1
			for i := range before {
				if before[i] != after[i] {
					if first < 0 {
						first = i
					}
					last = i
				}
			}
			if first < 0 || last-first >= capacity || before[last] != 0 {
				t.Fatalf("bytes %d to %d have changed", first, last)
			}
			if got := members(t, after[first:]); len(got) != 1 || got["config.ign"] != string(text) {
				t.Errorf("the archive has %v", got)
			}
			if got, err := Read(out); err != nil || !bytes.Equal(got, text) {
				t.Errorf("read back: %v, %d bytes", err, len(got))
			}
			if got, err := Read(in); err != nil || got != nil {
				t.Errorf("the input has %q, %v", got, err)
			}
			if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			fixture.Fails(t, "embedded twice", Embed(out, in+"2", text), ErrHasConfig)
		})
	}
}

func TestEmbedRefuses(t *testing.T) {
	whole := fixture.Must(os.ReadFile(live(t)))
	file := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "live.iso")
		fixture.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	small := config(t, 10)
	for name, test := range map[string]struct {
		in     string
		config []byte
		is     error
		want   string
	}{
		"no ISO":            {file([]byte("hello")), small, ErrNotISO, "live.iso: not a readable ISO 9660 image"},
		"empty":             {file(nil), small, ErrNotISO, ""},
		"truncated in area": {file(whole[:len(whole)-capacity/2]), small, ErrNotISO, "it is truncated"},
		"truncated early":   {file(whole[:40<<10]), small, ErrNotISO, ""},
		"another ISO":       {image(t, map[string][]byte{"README": []byte("music")}), small, ErrNoArea, "live.iso: not a live ISO of CoreOS"},
		"missing file":      {image(t, map[string][]byte{"coreos/igninfo.json": []byte(`{"file":"images/none.img"}`)}), small, ErrNoArea, "refers to images/none.img, which does not exist"},
		"invalid info":      {image(t, map[string][]byte{"coreos/igninfo.json": []byte(`{`)}), small, ErrNotISO, "coreos/igninfo.json"},
		"empty area":        {image(t, map[string][]byte{"images/a": make([]byte, 10), "coreos/igninfo.json": []byte(`{"file":"images/a","offset":20}`)}), small, ErrNotISO, ""},
		"too large":         {live(t), config(t, 300<<10), ErrTooLarge, "more than the area's 262144; most of it before compression: [/usr/local/bin/program "},
		"unknown content":   {image(t, map[string][]byte{"images/ignition.img": bytes.Repeat([]byte("x"), capacity)}), small, ErrHasConfig, "cannot read the content of its area"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := Embed(test.in, filepath.Join(dir, "out.iso"), test.config)
			fixture.Fails(t, "", err, test.is, test.want)
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	in := live(t)
	fixture.Fails(t, "output is the input", Embed(in, in, small), ErrSameFile)
	if err := Embed(in, filepath.Join(t.TempDir(), "no", "out.iso"), small); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// A config may fill the area to its last byte.
func TestLargestThatFits(t *testing.T) {
	a := area{length: 2000}
	text := fixture.Must(json.Marshal("x"))
	packed := fixture.Must(archive(text))
	a.length = int64(len(packed))
	if content, err := a.fill(text); err != nil || len(content) != len(packed) {
		t.Errorf("exactly as large: %v", err)
	}
	a.length--
	_, err := a.fill(text)
	fixture.Fails(t, "a byte too large", err, ErrTooLarge, "1 more than")
}

// A damaged image is read or refused, without a panic.
func TestDamagedImages(t *testing.T) {
	whole := fixture.Must(os.ReadFile(image(t, map[string][]byte{"images/ignition.img": make([]byte, 100), "coreos/igninfo.json": []byte(`{"file":"images/ignition.img"}`)})))
	refused := 0
	damage := func(content []byte) {
		switch _, err := find(bytes.NewReader(content), int64(len(content))); {
		case errors.Is(err, ErrNotISO), errors.Is(err, ErrNoArea):
			refused++
		case err != nil:
			t.Errorf("error %v", err)
		}
	}
	for i := headerOffset; i < len(whole); i++ {
		for _, value := range []byte{0, 1, recordHead + 1, 127, 255} {
			if whole[i] != 0 {
				content := bytes.Clone(whole)
				content[i] = value
				damage(content)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same damages each time
	for range 5000 {
		content := bytes.Clone(whole)
		for range 1 + random.IntN(4) {
			content[headerOffset+random.IntN(len(content)-headerOffset)] = byte(random.IntN(256))
		}
		damage(content)
	}
	if refused < 100 {
		t.Errorf("only %d were refused", refused)
	}
}

// find terminates for any file, and the area is within the file.
func FuzzFind(f *testing.F) {
	for _, path := range []string{
		image(f, map[string][]byte{"images/ignition.img": make([]byte, 100), "coreos/igninfo.json": []byte(`{"file":"images/ignition.img","offset":1,"length":50}`)}),
		image(f, map[string][]byte{"README": []byte("music")}),
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		// The 32 KiB before the volume have only the header, and slow the fuzzer down.
		f.Add(content[headerOffset:])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		content = append(make([]byte, headerOffset), content...)
		a, err := find(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		if _, err := a.read(bytes.NewReader(content)); err == nil && a.length > int64(len(content)) {
			t.Errorf("area %+v of %d bytes", a, len(content))
		}
	})
}
