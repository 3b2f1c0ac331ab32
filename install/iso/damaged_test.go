// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
)

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
