// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"crypto/sha512"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition/ignitiontest"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/iso"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const (
	liveConfig = "bootstrap-in-place-for-live-iso.ign"
	release    = "registry.example.com/release@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	server     = "http://localhost:22624/config/master"
)

var (
	withOperators = []string{"create", "single-node-ignition-config", "--program-in-image", "--release-image", release, "--master-ignition", server}
	plain         = []string{"create", "single-node-ignition-config", "--program-in-image", "--profile", "kubernetes", "--kubernetes-version", "1.35.2"}
	allInOne      = []string{"create", "aio-ignition", "--program-in-image", "--kubernetes-version", "1.35.2"}
)

func in(dir string, arguments []string, more ...string) []string {
	return append(append([]string{"--dir", dir}, arguments...), more...)
}

func folder(t *testing.T, change func(string) string, more map[string]string) string {
	t.Helper()
	text := fixture.Must(os.ReadFile("../installconfig/testdata/install-config.yaml"))
	// The renders of a release refuse the network for documents.
	given := strings.Replace(string(text), "192.0.2.0/24", "198.51.100.0/24", 1)
	content := given
	if change != nil {
		if content = change(content); content == given {
			t.Fatal("nothing is changed")
		}
	}
	list := []files.File{{Path: "install-config.yaml", Mode: 0o644, Content: []byte(content)}}
	for name, text := range more {
		list = append(list, files.File{Path: name, Mode: 0o600, Content: []byte(text)})
	}
	dir := t.TempDir()
	fixture.NoError(t, files.Write(dir, list))
	return dir
}

func replace(from, to string) func(string) string {
	return func(text string) string { return strings.Replace(text, from, to, 1) }
}

func tree(t *testing.T, dir string) (modes map[string]fs.FileMode, contents map[string]string) {
	t.Helper()
	modes, contents = map[string]fs.FileMode{}, map[string]string{}
	fixture.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		modes[name] = info.Mode().Perm()
		if !entry.IsDir() {
			text, err := os.ReadFile(filepath.Join(dir, name))
			contents[name] = string(text)
			return err
		}
		return nil
	}))
	return modes, contents
}

func settings(t *testing.T, text, path string) *node.Settings {
	t.Helper()
	entries, _ := ignitiontest.Read(t, []byte(text))
	s := &node.Settings{}
	fixture.NoError(t, yaml.UnmarshalStrict([]byte(entries["/"+path].Content), s))
	return s
}

// The files have the names of openshift-install, only their owner reads keys, and there is no master.ign (R-BIP-8,
// R-WRK-1, R-AIO-1). A second run keeps the keys, and only the time in its config differs (R-BIP-4).
func TestCreate(t *testing.T) {
	for name, test := range map[string]struct {
		arguments      []string
		file, settings string
		password       bool
	}{
		"openshift":  {withOperators, liveConfig, node.LiveSettings, true},
		"kubernetes": {plain, liveConfig, node.LiveSettings, false},
		"all-in-one": {allInOne, "aio.ign", node.AllInOneSettings, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, nil, nil)
			if _, errs := succeeds(t, in(dir, test.arguments)...); errs != "" && name != "all-in-one" {
				t.Error(errs)
			}
			modes, first := tree(t, dir)
			want := map[string]fs.FileMode{
				"install-config.yaml": 0o644, test.file: 0o600, "auth": 0o700, "auth/kubeconfig": 0o600, "metadata.json": 0o644,
				"sno-install-state": 0o700, "sno-install-state/identity.json": 0o600, "sno-install-state/kubeconfig": 0o600, "sno-install-state/manifests": 0o700,
				"auth/status-ca.crt": 0o600, "sno-install-state/status-ca.crt": 0o600, "sno-install-state/status.crt": 0o600, "sno-install-state/status.key": 0o600,
			}
			if test.password {
				want["auth/kubeadmin-password"], want["sno-install-state/kubeadmin-password"], want["worker.ign"] = 0o600, 0o600, 0o600
				want["sno-install-state/auth"], want["sno-install-state/tls"] = 0o700, 0o700
			}
			for name, mode := range modes {
				if parent := filepath.Base(filepath.Dir(name)); parent == "manifests" || parent == "tls" || strings.HasPrefix(name, "sno-install-state/auth/") {
					if delete(modes, name); mode != 0o600 {
						t.Errorf("%s has mode %o", name, mode)
					}
				}
			}
			fixture.Equal(t, "modes", want, modes)
			if test.password && !strings.Contains(first["worker.ign"], `"https://api-int.sno.example.com:22623/config/worker"`) {
				t.Errorf("worker.ign: %s", first["worker.ign"])
			}
			s := settings(t, first[test.file], test.settings)
			if want := map[string]string{"all-in-one": "crio"}[name]; s.Runtime != want {
				t.Errorf("runtime %q, want %q", s.Runtime, want)
			}
			if created, err := time.Parse(time.RFC3339, s.Created); err != nil || time.Since(created) > time.Hour || s.Validity != "87600h0m0s" || s.Domain() != "sno.example.com" {
				t.Errorf("settings %+v, %v", s, err)
			}

			succeeds(t, in(dir, test.arguments)...)
			_, second := tree(t, dir)
			before, units := ignitiontest.Read(t, []byte(first[test.file]))
			after, unitsAfter := ignitiontest.Read(t, []byte(second[test.file]))
			for _, all := range []map[string]ignitiontest.Entry{before, after} {
				s := all["/"+test.settings]
				s.Content = regexp.MustCompile(`(?m)^created: .*$`).ReplaceAllString(s.Content, "created: then")
				all["/"+test.settings] = s
			}
			fixture.Equal(t, "files of the second config", before, after)
			fixture.Equal(t, "units of the second config", units, unitsAfter)
			delete(first, test.file)
			delete(second, test.file)
			fixture.Equal(t, "second run", first, second)
		})
	}
}

// The release is that of openshift-install's variable, and the master config is made on the machine.
func TestReleaseVariable(t *testing.T) {
	t.Setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", release)
	dir := folder(t, nil, nil)
	succeeds(t, in(dir, []string{"create", "single-node-ignition-config", "--program-in-image"})...)
	live := fixture.Must(os.ReadFile(filepath.Join(dir, liveConfig)))
	if s := settings(t, string(live), node.LiveSettings); s.ReleaseImage != release || s.MasterIgnition != "" {
		t.Errorf("%+v", s)
	}
	entries, _ := ignitiontest.Read(t, live)
	for _, name := range []string{"tls/kube-apiserver-lb-signer.key", "auth/kubeconfig-loopback"} {
		if entries["/"+node.LiveDir+"/"+name].Content == "" {
			t.Errorf("the live system lacks %s", name)
		}
	}
}

// Flags are written to the settings of the machine.
func TestCreateFlags(t *testing.T) {
	text, err := os.ReadFile(os.Args[0])
	if err != nil || len(text) == 0 {
		t.Fatal(err)
	}
	master := file(t, "master.ign", `{"ignition":{"version":"3.2.0"}}`)
	dir := folder(t, nil, map[string]string{
		"manifests/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "openshift/b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
		"extra/kernel-arguments/a.conf": "quiet\n", "live/files/etc/site.conf": "live",
		"net.yaml": "interfaces: [{name: eno1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]\n",
	})
	succeeds(t, in(dir, []string{"create", "single-node-ignition-config"}, "--release-image", release, "--program", "http://hub.example.com/sno-install",
		"--master-ignition", master, "--node-name", "master0", "--node-ip", "198.51.100.10", "--validity", "48h",
		"--extra", filepath.Join(dir, "extra"), "--extra-live", filepath.Join(dir, "live"), "--network-config", filepath.Join(dir, "net.yaml"))...)
	live := fixture.Must(os.ReadFile(filepath.Join(dir, liveConfig)))
	s := settings(t, string(live), node.LiveSettings)
	got := []string{s.Profile, s.ReleaseImage, s.Name, fmt.Sprint(s.Addresses), s.Validity, fmt.Sprint(s.Images), fmt.Sprint(s.KernelArguments), s.MasterIgnition}
	want := []string{"openshift", release, "master0", "[198.51.100.10]", "48h0m0s", "map[]", "[quiet]", "/" + node.UserMasterIgnition}
	fixture.Equal(t, "settings", want, got)
	for _, part := range []string{`"/etc/site.conf"`, "/etc/NetworkManager/system-connections/eno1.nmconnection", "manifests_a.yaml", "openshift_b.yaml", fmt.Sprintf("sha512-%x", sha512.Sum512(text))} {
		if !strings.Contains(string(live), part) {
			t.Errorf("the config has no %s", part)
		}
	}
}

// With --iso the config is in a copy of a live ISO that only its owner reads (R-BIP-5).
func TestCreateISO(t *testing.T) {
	dir := folder(t, nil, nil)
	live, out := liveISO(t), filepath.Join(t.TempDir(), "node.iso")
	printed, _ := succeeds(t, in(dir, plain, "--iso", live, "--out", out)...)
	want := fixture.Must(os.ReadFile(filepath.Join(dir, liveConfig)))
	fixture.Equal(t, "read back", string(want), string(fixture.Must(iso.Read(out))))
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if !strings.HasSuffix(printed, "\n"+out+" is "+live+" with the config in it. It has private keys: protect it like them.\n\nNext: boot the machine from it.\n") {
		t.Errorf("output %s", printed)
	}
}

// The disk may be set by the older variable, with a warning (R-BIP-9).
func TestOlderVariable(t *testing.T) {
	t.Setenv(installconfig.DiskVariable, "--copy-network /dev/vdb")
	dir := folder(t, func(text string) string {
		before, after, _ := strings.Cut(text, "bootstrapInPlace:\n")
		_, after, _ = strings.Cut(after, "\n")
		return before + after
	}, nil)
	_, errs := succeeds(t, in(dir, withOperators)...)
	if want := "warning: " + installconfig.DiskVariable + " is older than the field"; !strings.HasPrefix(errs, want) || strings.Count(errs, "\n") != 1 {
		t.Error(errs)
	}
	text := fixture.Must(os.ReadFile(filepath.Join(dir, liveConfig)))
	s := settings(t, string(text), node.LiveSettings)
	fixture.Equal(t, "", []string{"/dev/vdb", "--copy-network"}, append([]string{s.InstallationDisk}, s.InstallerArguments...))
}

func refused(t *testing.T, dir string, arguments []string, want ...string) (errs string) {
	t.Helper()
	modes, contents := tree(t, dir)
	code, out, errs := run(t.Context(), arguments...)
	if code != phase.ExitInput || out != "" || !strings.Contains(errs, "nothing was done") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for _, text := range want {
		if !strings.Contains(errs, text) {
			t.Errorf("the error lacks %q:\n%s", text, errs)
		}
	}
	modesAfter, contentsAfter := tree(t, dir)
	fixture.Equal(t, "modes in the folder", modes, modesAfter)
	fixture.Equal(t, "the folder", contents, contentsAfter)
	return errs
}

// All that is wrong with flags and files is reported at once.
func TestAllErrorsAtOnce(t *testing.T) {
	dir := folder(t, func(text string) string {
		return strings.Replace(replace("  replicas: 1\n", "")(text), "pullSecret: ", "ignored: ", 1)
	}, map[string]string{
		"manifests/a.yaml": "a: [", "manifests/b.txt": "", "openshift/c.yaml": "kind: List\n", "extra/speed/a": "", "live/files/a": "",
		"net.yaml": "interfaces: [{name: eno1, type: tunnel}]", "node.iso": "x",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	arguments := in(dir, []string{"create", "single-node-ignition-config"}, "--profile", "openshift", "--policy", "never", "--kubernetes-version", "latest", "--image", "etdc=x",
		"--validity", "1m", "--program", "ftp://hub", "--program-sha512", "0", "--program-in-image", "--node-name", "A", "--node-ip", "host", "--node-ip", "192.0.2.10", "--node-ip", "192.0.2.11",
		"--network-config", at("net.yaml"), "--extra", at("extra"), "--extra-live", at("none"), "--iso", at("node.iso"), "--out", at("out.iso"))
	errs := refused(t, dir, arguments,
		`--release-image ""`, `--kubernetes-version "latest"`, `--image "etdc"`, `--policy "never"`,
		`--validity "1m0s"`, `--iso: `+at("node.iso")+`: not a readable ISO 9660 image`, `--node-ip "host"`, `--node-ip "192.0.2.11": unusable value: give at most one address of each family`,
		`--node-name "A"`, `--program "ftp://hub": unusable value: give an http or https URL`, `--program "ftp://hub": unusable value: give either a URL or --program-in-image`,
		`--program-sha512 "0"`, at("extra/speed/a")+": not supported in an extra folder", `--extra-live "`+at("none")+`": unusable value: no such folder`,
		"install-config.yaml:1: pullSecret: ", "install-config.yaml:6: controlPlane.replicas: ", `: ignored: `, at("net.yaml")+`:1: interfaces[0].type: Unsupported value: "tunnel"`,
		"manifests/a.yaml: not a manifest", "manifests/b.txt: not a manifest", "openshift/c.yaml: not a manifest",
	)
	if lines := strings.Count(errs, "\n  "); lines != 21 || !strings.HasPrefix(errs, "sno-install: nothing was done:\n  --") {
		t.Errorf("%d lines in the list:\n%s", lines, errs)
	}
}

func TestRefused(t *testing.T) {
	old := func(t *testing.T) string {
		state := fixture.Must(credentials.New(t.Context(), credentials.Options{
			Profile: inputs.OpenShift, Name: "sno", Domain: "sno.example.com", Validity: inputs.DefaultValidity, Now: time.Now().Add(-25 * time.Hour),
		}))
		list := fixture.Must(state.Files())
		dir := folder(t, nil, nil)
		fixture.NoError(t, files.Write(filepath.Join(dir, credentials.Dir), list))
		return dir
	}
	unchanged := func(t *testing.T) string { return folder(t, nil, nil) }
	for name, test := range map[string]struct {
		folder    func(*testing.T) string
		arguments []string
		want      string
	}{
		"no folder": {func(t *testing.T) string { return t.TempDir() }, withOperators, "install-config.yaml: no such file or directory; --dir is the folder that has it"},
		"network": {func(t *testing.T) string { return folder(t, replace("198.51.100.0/24", "192.0.2.0/24"), nil) }, withOperators,
			"192.0.2.0/24 is for documents, and the release refuses it"},
		// U-INS-19
		"old certificates": {old, withOperators, "machine-config-server-tls.yaml: certificates of an earlier run are too old; use a new folder: it is from " +
			time.Now().Add(-25*time.Hour).UTC().Format("2006-01-02")},
		"kind without definition": {func(t *testing.T) string {
			return folder(t, nil, map[string]string{"manifests/a.yaml": "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata: {name: a}\n"})
		}, withOperators, "manifests/a.yaml"},
		"another profile": {old, plain, "the folder has the state of another cluster"},
		"no version":      {unchanged, allInOne[:3], `--kubernetes-version ""`},
		"runtime":         {unchanged, append(allInOne, "--runtime", "docker"), `--runtime "docker": unusable value: crio or containerd`},
		"no program":      {unchanged, []string{"create", "aio-ignition"}, `--program "": unusable value: give either a URL or --program-in-image`},
		"profile":         {unchanged, append([]string{"--profile", "x"}, withOperators...), `--profile "x"`},
		"ISO without out": {unchanged, append([]string{"--iso", "x"}, withOperators...), "--iso and --out go together"},
		"master config":   {unchanged, append(withOperators[:5:5], "--master-ignition", "none.ign"), `--master-ignition "none.ign": unusable value: give an https`},
		"release by tag": {unchanged, append(slices.Concat(withOperators[:4], []string{"registry.example.com/release:4.21.3"}), withOperators[5:]...),
			`--release-image "registry.example.com/release:4.21.3": unusable value: give it by digest`},
		"release by a short digest": {unchanged, append(slices.Concat(withOperators[:4], []string{"registry.example.com/release@sha256:0"}), withOperators[5:]...),
			"give it by digest"},
		"master config by http": {unchanged, append(withOperators[:5:5], "--master-ignition", "http://me:secret@192.0.2.5/m"),
			"--master-ignition: unusable value: nothing proves where the master config is from: http://me:xxxxx@192.0.2.5/m: use https"},
		"master config by ftp":     {unchanged, append(withOperators[:5:5], "--master-ignition", "ftp://me:secret@192.0.2.5/m"), `"ftp://me:xxxxx@192.0.2.5/m"`},
		"sum of the master config": {unchanged, append(withOperators, "--master-ignition-sha512", "0"), `--master-ignition-sha512 "0"`},
		"no CA":                    {unchanged, append(withOperators, "--master-ignition-ca", "none.pem"), "--master-ignition-ca: unusable value"},
		"CA without a certificate": {unchanged, append(withOperators, "--master-ignition-ca", os.Args[0]), "there is no certificate in it"},
		"CA for a file":            {unchanged, append(withOperators[:5:5], "--master-ignition", os.Args[0], "--master-ignition-ca", os.Args[0]), "go with a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := test.folder(t)
			refused(t, dir, in(dir, test.arguments), test.want)
		})
	}
}

// The summary describes each file and the next step.
func TestSummary(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"single node": {withOperators, `Written to DIR:
  bootstrap-in-place-for-live-iso.ign      N KiB  config of the live system; it has private keys
  auth/kubeconfig                          N KiB  kubeconfig of the administrator
  auth/kubeadmin-password                    N B  password of user kubeadmin
  metadata.json                              N B  names of the cluster
  worker.ign                                 N B  config of workers that are added later
  sno-install-state/                              keys, for a second run within 24 hours

Next: put the config into a live ISO, and boot the machine from it:
  sno-install embed --iso LIVE-ISO --ignition DIR/bootstrap-in-place-for-live-iso.ign --out NEW-ISO
`},
		"all-in-one": {allInOne, `Written to DIR:
  aio.ign                 N KiB  config of the machine; it has private keys
  auth/kubeconfig         N KiB  kubeconfig of the administrator
  metadata.json             N B  names of the cluster
  sno-install-state/             keys, for a second run within 24 hours

Next: write the image and the config to the machine's disk, and restart:
  coreos-installer install --ignition-file DIR/aio.ign DISK
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, nil, nil)
			out, _ := succeeds(t, in(dir, test.arguments)...)
			// The sizes differ by some bytes from run to run; only their alignment is compared.
			figure := regexp.MustCompile(` +[0-9.]+ (KiB|B) `)
			out = figure.ReplaceAllStringFunc(strings.ReplaceAll(out, dir, "DIR"), func(s string) string {
				return fmt.Sprintf("%*s ", len(s)-1, "N "+strings.Fields(s)[1])
			})
			fixture.Equal(t, "", test.want, out)
		})
	}
}
