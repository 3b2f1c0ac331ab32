// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
	"github.com/vincent-petithory/dataurl"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/internal/fixture"
)

const service = "[Service]\nExecStart=/bin/true\n"

func read(t *testing.T, text []byte) types.Config {
	t.Helper()
	c, r, err := v3_6.ParseCompatibleVersion(text)
	if err != nil || len(r.Entries) > 0 {
		t.Fatalf("parse: %v %v: %s", err, r, text)
	}
	return c
}

func TestBuilder(t *testing.T) {
	want := map[string]ignitiontest.Entry{
		"/etc/motd":                 {Mode: 0o644, Content: "single node"},
		"/etc/empty":                {Mode: 0o600},
		"/etc/keys/signer.key":      {Mode: 0o600, Content: strings.Repeat("secret ", 100)},
		"/usr/local/bin/sno-helper": {Mode: 0o755, Content: string(binary(3, 300))},
	}
	var b Builder
	for path, f := range want {
		b.AddFile("test", files.File{Path: strings.TrimPrefix(path, "/"), Mode: f.Mode, Content: []byte(f.Content)})
	}
	want["/usr/local/bin/program"] = ignitiontest.Entry{Mode: 0o755, Content: "https://example.com/p"}
	want["/etc/keys"] = ignitiontest.Entry{Mode: fs.ModeDir | 0o700}
	b.AddDownload("test", "usr/local/bin/program", 0o755, "https://example.com/p", strings.Repeat("ab", 64))
	b.AddDir("test", "etc/keys", 0o700)
	b.AddUnit("test", "on.service", service+"[Install]\nWantedBy=multi-user.target\n")
	b.AddUnit("test", "off.service", service+"# [Install] would enable it\n")
	b.AddDropIn("test", "kubelet.service", "10-a.conf", "[Unit]\n")
	b.AddDropIn("test", "kubelet.service", "20-b.conf", "[Unit]\n")
	b.AddSSHKeys("test", "core", []string{"ssh-ed25519 AAAA a", "ssh-ed25519 AAAA b"})
	b.AddSSHKeys("test", "nobody", nil)
	text := fixture.Must(b.Encode())
	for _, part := range []string{`"version":"3.2.0"`, `"sha512-` + strings.Repeat("ab", 64) + `"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	entries, _ := ignitiontest.Read(t, text)
	fixture.Equal(t, "files", want, entries)
	c := read(t, text)
	for _, f := range c.Storage.Files {
		if !*f.Overwrite || f.Contents.Compression == nil {
			t.Errorf("%s: an image's file, or a parent's compression, would remain: %+v", f.Path, f)
		}
	}
	enabled := map[string]bool{}
	for _, u := range c.Systemd.Units {
		enabled[u.Name] = u.Enabled != nil && *u.Enabled
		if u.Name == "kubelet.service" && (len(u.Dropins) != 2 || u.Contents != nil) {
			t.Errorf("drop-ins: %+v", u)
		}
	}
	fixture.Equal(t, "enabled", map[string]bool{"on.service": true, "off.service": false, "kubelet.service": false}, enabled)
	if u := c.Passwd.Users; len(u) != 1 || u[0].Name != "core" || len(u[0].SSHAuthorizedKeys) != 2 {
		t.Errorf("users: %+v", u)
	}
	again, err := b.Encode()
	if err != nil || !bytes.Equal(again, text) {
		t.Error("the second text differs")
	}
}

// The version is the lowest with all fields.
func TestVersion(t *testing.T) {
	var b Builder
	b.AddKernelArguments("nosmt")
	text := fixture.Must(b.Encode())
	fixture.Equal(t, "", `{"ignition":{"version":"3.3.0"},"kernelArguments":{"shouldExist":["nosmt"]}}`, string(text))
}

func TestConflicts(t *testing.T) {
	var b Builder
	b.AddFile("one", files.File{Path: "etc/hosts"})
	b.AddFile("two", files.File{Path: "/etc//hosts"})
	b.AddDir("three", "etc/hosts", 0o700)
	b.AddUnit("one", "a.service", service)
	b.AddUnit("two", "a.service", service)
	b.AddDropIn("one", "a.service", "x.conf", "")
	b.AddDropIn("two", "a.service", "x.conf", "")
	b.AddSSHKeys("one", "core", []string{"k"})
	b.AddFile("four", files.File{Path: "etc/systemd/system/a.service"})
	b.AddFile("five", files.File{Path: "etc/systemd/system/a.service.d/x.conf"})
	var other Builder
	other.AddSSHKeys("two", "core", []string{"k"})
	b.AddBuilder(&other)
	_, err := b.Encode()
	if !errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	want := []string{
		"path /etc/hosts: defined by two sources: one and two", "path /etc/hosts: defined by two sources: one and three",
		"unit a.service: defined by two sources: one and two", "drop-in a.service x.conf: defined by two sources: one and two",
		"unit a.service: defined by two sources: one and four", "drop-in a.service x.conf: defined by two sources: one and five",
		"user core: defined by two sources: one and two",
	}
	fixture.Equal(t, "", strings.Join(want, "\n"), err.Error())
}

func TestInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		add  func(*Builder)
		want string
	}{
		"unit of no kind": {func(b *Builder) { b.AddUnit("test", "a", service) }, "invalid systemd unit extension"},
		"unit's text":     {func(b *Builder) { b.AddUnit("test", "a.service", "[Unit") }, "invalid unit content"},
	} {
		t.Run(name, func(t *testing.T) {
			var b Builder
			test.add(&b)
			_, err := b.Encode()
			fixture.Fails(t, "", err, ErrInvalid, test.want)
		})
	}
}

// All of an extra folder is in the config, or an error (R-BIP-24).
func TestExtra(t *testing.T) {
	file := func(text string, mode int) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(text), Mode: fsMode(mode)}
	}
	var b Builder
	arguments := fixture.Must(b.AddExtra("extra", fstest.MapFS{
		"units/storage.service":               file(service+"[Install]\nWantedBy=multi-user.target\n", 0o644),
		"units/sshd.service.d/10-limits.conf": file("[Service]\n", 0o644),
		"files/etc/chrony.conf":               file("server ntp.example.com\n", 0o640),
		"files/usr/local/bin/check":           file("#!/bin/sh\n", 0o755),
		"kernel-arguments/10-cpu.conf":        file("# for the radio\nnosmt\n\n  isolcpus=2-7  \n", 0o644),
	}))
	fixture.Equal(t, "kernel arguments", []string{"nosmt", "isolcpus=2-7"}, arguments)
	text, err := b.Encode()
	fixture.NoError(t, err)
	c := read(t, text)
	modes := map[string]int{}
	for _, f := range c.Storage.Files {
		modes[f.Path] = *f.Mode
	}
	fixture.Equal(t, "files", map[string]int{"/etc/chrony.conf": 0o640, "/usr/local/bin/check": 0o755}, modes)
	if len(c.Systemd.Units) != 2 {
		t.Errorf("units: %+v", c.Systemd.Units)
	}

	var wrong Builder
	_, err = wrong.AddExtra("extra", fstest.MapFS{
		"unit/a.service":               file("", 0o644),
		"units/deep/a.service":         file("", 0o644),
		"units/a.service.d/b.txt":      file("", 0o644),
		"kernel-arguments/cpu":         file("", 0o644),
		"README":                       file("", 0o644),
		"files/bin/su":                 &fstest.MapFile{Mode: fsMode(0o755) | 1<<23},
		"files/link":                   &fstest.MapFile{Mode: 1<<27 | 0o777, Data: []byte("etc")},
		"kernel-arguments/d/more.conf": file("", 0o644),
	})
	for _, name := range []string{
		"extra/unit/a.service", "extra/units/deep/a.service", "extra/units/a.service.d/b.txt", "extra/kernel-arguments/cpu", "extra/README",
		"extra/files/bin/su", "extra/files/link", "extra/kernel-arguments/d/more.conf",
	} {
		fixture.Fails(t, name, err, ErrExtra, name+": ")
	}
}

// The worker's config points to the cluster, and trusts only its CA (R-WRK-1).
func TestPointer(t *testing.T) {
	for host, want := range map[string]string{
		"api-int.sno.example.com": "https://api-int.sno.example.com:22623/config/worker",
		"192.0.2.5":               "https://192.0.2.5:22623/config/worker",
		"2001:db8::5":             "https://[2001:db8::5]:22623/config/worker",
	} {
		text, err := Pointer(host, "worker", []byte("CA"))
		fixture.NoError(t, err)
		var got, wanted any
		fixture.NoError(t, json.Unmarshal(text, &got))
		if err := json.Unmarshal([]byte(`{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"`+want+`"}]},
			"security":{"tls":{"certificateAuthorities":[{"source":"data:text/plain;charset=utf-8;base64,Q0E="}]}}}}`), &wanted); err != nil {
			t.Fatal(err)
		}
		fixture.Equal(t, "", wanted, got)
		ignitiontest.Validate(t, text)
	}
}

// All files of a folder have their path, content and mode, while Butane sets 0644 or 0755, so that all users could read
// keys (R-BIP-24, U-INS-8).
func TestTree(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	want, dir := map[string]ignitiontest.Entry{
		"/etc/chrony.conf":                  {Mode: 0o644, Content: "server ntp.example.com iburst\n"},
		"/etc/empty":                        {Mode: 0o644},
		"/etc/keys/tls.key":                 {Mode: 0o600, Content: "-----BEGIN PRIVATE KEY-----\n"},
		"/etc/.hidden/ein Name %41+&#.conf": {Mode: 0o640, Content: "100 % näher & <b> # ? + \x00"},
		"/usr/local/bin/check":              {Mode: 0o755, Content: "#!/bin/sh\nexec true\n"},
		"/var/all":                          {Mode: 0o644, Content: string(all)},
		"/var/large.yaml":                   {Mode: 0o600, Content: strings.Repeat("kind: Pod\n", 5000)},
	}, t.TempDir()
	for path, f := range want {
		fixture.Put(t, dir, "files"+path, f.Content)
		fixture.NoError(t, os.Chmod(filepath.Join(dir, "files", path), f.Mode))
	}
	var b Builder
	fixture.Must(b.AddExtra("extra", os.DirFS(dir)))
	text := fixture.Must(b.Encode())
	ignitiontest.Validate(t, text)
	got, _ := ignitiontest.Read(t, text)
	fixture.Equal(t, "", want, got)
}

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
