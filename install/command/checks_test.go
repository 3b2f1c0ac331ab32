// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

func root(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	list := []files.File{{Path: "etc/os-release", Mode: 0o644, Content: []byte("ID=rhcos\n")}}
	for path, text := range contents {
		list = append(list, files.File{Path: path, Mode: 0o600, Content: []byte(text)})
	}
	fixture.NoError(t, files.Write(dir, list))
	return dir
}

// Leftovers are listed, and fail the command (R-BIP-26).
func TestLeftovers(t *testing.T) {
	t.Parallel()
	out, errs := succeeds(t, "check-leftovers", "--root", root(t, nil))
	fixture.Equal(t, "nothing is left", "Nothing of the installation is left.\n", out+errs)
	dir := root(t, map[string]string{node.UnitDir + "/post-reboot.service": "", node.LiveSettings: "", node.Program: ""})
	code, out, errs := run(t.Context(), "check-leftovers", "--root", dir)
	want := `KIND     PATH                                      WHY
unit     /etc/systemd/system/post-reboot.service   finishes the installation after the restart
folder   /opt/openshift                            files of the live system
file     /usr/local/bin/sno-install                the installer
`
	if diff := cmp.Diff(want, out); code != phase.ExitFailed || errs != "sno-install: the installation has left things on this node: 3\n" || diff != "" {
		t.Errorf("exit code %d: %s (-want +got):\n%s", code, errs, diff)
	}
	// A folder that is no root of a system is an input error.
	if code, out, errs := run(t.Context(), "check-leftovers", "--root", t.TempDir()); code != phase.ExitInput || out != "" || !strings.Contains(errs, "a folder etc") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func programs(t *testing.T, output map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range output {
		fixture.Script(t, dir, name, "echo '"+text+"'")
	}
	t.Setenv("PATH", dir)
}

func names(t *testing.T, bundle io.Reader) []string {
	t.Helper()
	unpacked := fixture.Must(gzip.NewReader(bundle))
	var found []string
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			// No data may follow the archive.
			if _, err := io.Copy(io.Discard, unpacked); err != nil {
				t.Error(err)
			}
			return found
		}
		fixture.NoError(t, err)
		found = append(found, header.Name)
	}
}

// The logs are written to a file that only its owner reads, or alone to standard output (R-BIP-23).
func TestGather(t *testing.T) {
	dir, wd := root(t, nil), t.TempDir()
	t.Chdir(wd)
	programs(t, map[string]string{"ip": "eno1"})
	out, errs := succeeds(t, "gather", "--root", dir, "--id", "7", "--output", "-")
	fixture.Equal(t, "errors", "", errs)
	want := names(t, strings.NewReader(out))
	if !slices.Contains(want, "log-bundle-7/gather.log") || !slices.Contains(want, "log-bundle-7/control-plane/master/network/ip-addr.txt") {
		t.Errorf("the bundle has %q", want)
	}
	if left, err := os.ReadDir(wd); err != nil || len(left) > 0 {
		t.Errorf("written: %v, %v", left, err)
	}
	for file, arguments := range map[string][]string{"log-bundle-7.tar.gz": nil, "logs/mine.tar.gz": {"--output", "logs/mine.tar.gz"}} {
		out, errs := succeeds(t, append([]string{"gather", "--root", dir, "--id", "7"}, arguments...)...)
		fixture.Equal(t, "output", "The logs are in "+file+".\n", out+errs)
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		bundle := fixture.Must(os.ReadFile(file))
		fixture.Equal(t, file, want, names(t, bytes.NewReader(bundle)))
	}
	if code, out, errs := run(t.Context(), "gather", "--root", dir); code != 0 || !regexp.MustCompile(`^The logs are in log-bundle-\d{14}\.tar\.gz\.\n$`).MatchString(out) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, errs := run(t.Context(), "gather", "--root", dir, "--id", "a/b")
	if code != phase.ExitInput || out != "" || !strings.HasPrefix(errs, "sno-install: --id: ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	fixture.Absent(t, "log-bundle-a")
}

// A folder without a usable config is an input error, before any check runs.
func TestPreflightFolder(t *testing.T) {
	const noConfig = "interfaces: [{name: eno1, type: tunnel}]"
	for name, test := range map[string]struct {
		change func(string) string
		more   map[string]string
		want   string
	}{
		"install-config": {replace("  replicas: 1\n", ""), nil, "install-config.yaml:6: controlPlane.replicas: "},
		"network config": {nil, map[string]string{"net.yaml": noConfig}, `net.yaml:1: interfaces[0].type: Unsupported value: "tunnel"`},
		"manifest":       {nil, map[string]string{"manifests/a.yaml": "a: ["}, "manifests/a.yaml: not a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, test.change, test.more)
			arguments := []string{"preflight", "--dir", dir}
			if test.more["net.yaml"] != "" {
				arguments = append(arguments, "--network-config", filepath.Join(dir, "net.yaml"))
			}
			refused(t, dir, arguments, test.want)
		})
	}
	dir := t.TempDir()
	refused(t, dir, []string{"preflight", "--dir", dir}, "install-config.yaml: no such file")
	refused(t, dir, []string{"preflight", "--host", "--root", dir}, node.LiveSettings+": no such file")
}

// In a valid folder the user's additions are checked, and each finding has advice (R-BIP-20, R-BIP-21).
func TestPreflight(t *testing.T) {
	t.Parallel()
	dir := folder(t, func(text string) string {
		before, after, _ := strings.Cut(text, "imageDigestSources:")
		_, after, _ = strings.Cut(after, "pullSecret:")
		return replace("example.com", "invalid")(before) + "pullSecret:" + strings.ReplaceAll(after, "registry.example.com", "cloud.openshift.com")
	}, map[string]string{"manifests/a.yaml": "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata: {name: a}\n"})
	code, out, errs := run(t.Context(), "preflight", "--dir", dir, "--node-name", "master0")
	if code != phase.ExitInput || errs != "sno-install: the installation would fail: the input has to be changed\n" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, part := range []string{"api.sno.invalid: ", "api-int.sno.invalid: ", "*.apps.sno.invalid: ", "master0.sno.invalid: ", "manifests/a.yaml: VolumeSnapshotClass a: ", "what to do: "} {
		if !strings.Contains(out, part) {
			t.Errorf("no %s in:\n%s", part, out)
		}
	}
}

const settingsText = `profile: kubernetes
clusterName: sno
baseDomain: invalid
validity: 1h
name: master0
machineNetworks: [192.0.2.0/24]
installationDisk: /dev/vda
created: "2026-11-25T08:00:00Z"
`

// On the machine its address and its disk are checked, according to its settings (R-BIP-19).
func TestPreflightHost(t *testing.T) {
	programs(t, map[string]string{
		"ip":    `[{"ifname":"eno1","addr_info":[{"local":"192.0.2.10","scope":"global","valid_life_time":4294967295}]}]`,
		"lsblk": `{"blockdevices":[{"path":"/dev/vda","type":"disk","size":128849018880,"ro":false,"mountpoints":[null]}]}`,
	})
	dir := root(t, map[string]string{node.LiveSettings: settingsText, "dev/vda": ""})
	code, out, errs := run(t.Context(), "preflight", "--host", "--root", dir)
	if code != phase.ExitInput || !strings.Contains(errs, "the installation would fail") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, part := range []string{"failed  dns      master0.sno.invalid: ", "ok      address  192.0.2.10 of eno1 is static\n", "ok      disk     /dev/vda", "failed  image    the image has no program kubelet in /usr/bin", "ok      clock    ", "STATE   CHECK    FINDING\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in:\n%s", part, out)
		}
	}
	fixture.NoError(t, os.WriteFile(filepath.Join(dir, node.LiveSettings), []byte(settingsText+"created: yesterday\n"), 0o600))
	if code, out, errs := run(t.Context(), "preflight", "--host", "--root", dir); code != phase.ExitInput || out != "" || !strings.Contains(errs, node.LiveSettings) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
