// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

// programs replaces those that a bundle needs. They print a text, and podman fails.
func programs(t *testing.T, output string) {
	t.Helper()
	dir := t.TempDir()
	fixture.Put(t, dir, "output", output)
	for name, list := range map[string]string{
		"systemctl": "bad.service loaded failed failed Bad", "journalctl": "", "ip": "",
		"crictl": `{"containers":[{"id":"c1","metadata":{"name":"etcd"}},{"id":"../x","metadata":{"name":"a/b"}}]}`,
	} {
		fixture.Script(t, dir, name, "case $1 in ps|list-units) echo '"+list+"';; *) cat "+dir+"/output;; esac")
	}
	fixture.Script(t, dir, "podman", "echo 'no such storage' >&2; exit 7")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// bundled returns a bundle, and the files in it.
func bundled(t *testing.T, o Options) (bundle string, all map[string]string) {
	t.Helper()
	out := fixture.Must(Bundle(t.Context(), o))
	unzipped := fixture.Must(gzip.NewReader(bytes.NewReader(out)))
	all = map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return string(out), all
		}
		content, readErr := io.ReadAll(archive)
		fixture.NoError(t, errors.Join(err, readErr))
		all[strings.TrimPrefix(header.Name, "log-bundle-"+o.ID+"/")] = string(content)
	}
}

// No file of a bundle has one of the secrets that are in every source: outputs of programs, assets, status files,
// names of files, and kinds of objects. Other lines are kept, failures are noted, and the node's bundle includes that
// of the live system (R-BIP-23).
func TestBundle(t *testing.T) {
	root, secrets, text := t.TempDir(), plant(), ""
	live := func(name, text string) { fixture.Put(t, root, node.LiveDir+"/"+name, text) }
	for i, p := range secrets {
		text += p.text
		live(fmt.Sprintf("assets/%d.txt", i), p.text)
	}
	programs(t, text)
	fixture.Put(t, root, "etc/resolv.conf", text)
	fixture.Put(t, root, kernelHostname, "cp-1\n")
	fixture.Put(t, root, node.StatusDir+"/status.txt", text)
	fixture.Put(t, root, node.LiveSettings, "profile: kubernetes\n")
	const planted = "planted-in-file"
	for _, name := range []string{"auth/kubeconfig", "a.key", "pull-secret.yaml", "master.ign", "etcd-snapshot.db", "secrets/a.txt", ".docker/config.json"} {
		live(name, planted)
	}
	for _, kind := range []string{"Secret", "SecretList", "MachineConfig", "ControllerConfig", "Config", "EncryptionConfiguration", "OAuthClient", "OAuthAccessToken"} {
		live(kind+".yaml", "items:\n- kind: "+kind+" # x\n  x: "+planted+"\n")
		live(kind+".json", `{"x":"`+planted+`","kind":"`+kind+`"}`)
	}
	live("etcd-bootstrap/manifests/a.yaml", planted) // manifests/ has it too
	live("program", "\x7fELF\x00"+planted)

	check := func(id string, want ...string) (bundle, log string) {
		t.Helper()
		bundle, all := bundled(t, Options{Root: root, ID: id})
		for name, content := range all {
			if strings.Contains(content, planted) || strings.Contains(name, "a_b") {
				t.Errorf("%s should be omitted", name)
			}
			for _, p := range secrets {
				if leaked := p.leaked(content); len(leaked) > 0 {
					t.Errorf("%s has %q of %q", name, leaked, p.text)
				}
			}
		}
		for _, name := range want {
			if got := strings.Count(all[name], before); got != len(secrets) {
				t.Errorf("%s has %d of %d harmless lines", name, got, len(secrets))
			}
		}
		return bundle, all[logFile]
	}
	want := []string{"journals/kubelet.log", "containers/etcd-c1.log", "containers/etcd-c1.inspect", "network/ip-addr.txt", "network/ip-route.txt", "network/resolv.conf", "status/status.txt"}
	in := func(folder string, more ...string) []string {
		for _, name := range want {
			more = append(more, folder+"/"+name)
		}
		return more
	}
	phase, log := check("bootstrap", in("bootstrap", "unit-status/bad.service.txt", "unit-status/bad.service.log", "bootstrap/journals/bootkube.log")...)
	for _, want := range []string{"podman ps --all --format=json: exit status 7: no such storage", "resources: omitted", "openshift/program: omitted", "assets/0.txt: secrets are replaced"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in\n%s", want, log)
		}
	}
	fixture.NoError(t, os.RemoveAll(filepath.Join(root, node.LiveDir)))
	own := in("control-plane/cp-1", "control-plane/cp-1/journals/post-reboot.log")
	if _, log := check("2", own...); !strings.Contains(log, node.LogBundle+": missing or damaged") {
		t.Errorf("no note about a missing bundle in\n%s", log)
	}
	fixture.Put(t, root, node.LogBundle, phase)
	check("3", slices.Concat(own, in("log-bundle-bootstrap/bootstrap"))...)
	fixture.Put(t, root, node.LogBundle, phase[:len(phase)/2])
	if _, log := check("4", own...); !strings.Contains(log, "unexpected EOF") {
		t.Errorf("no note about a damaged bundle in\n%s", log)
	}
}

// The newest lines are kept, omissions are noted, and no bundle is larger than its limit.
func TestLimit(t *testing.T) {
	root, journal := t.TempDir(), ""
	fixture.Put(t, root, node.LiveSettings, "profile: kubernetes\n")
	for i := range 1500 {
		journal += fmt.Sprintf("line %d %x\n", i, i*i*i)
	}
	programs(t, journal)
	for _, limit := range []int{8 << 10, 4 << 10} {
		bundle, all := bundled(t, Options{Root: root, ID: "1", Limit: int64(limit)})
		text := all["bootstrap/journals/bootkube.log"]
		if len(bundle) > limit || !strings.HasPrefix(text, "line ") || len(text) == len(journal) || !strings.HasSuffix(journal, "\n"+text) || !strings.Contains(all[logFile], "bootkube.log: the oldest ") {
			t.Errorf("limit %d: %d bytes, kept %.30q ... of %d bytes\n%s", limit, len(bundle), text, len(text), all[logFile])
		}
	}
	if _, err := Bundle(t.Context(), Options{Root: root, ID: "1", Limit: 100}); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v", err)
	}
}

func TestID(t *testing.T) {
	for _, id := range []string{"", "../x", "a/b", ".", "a b", "$(id)"} {
		if _, err := Bundle(t.Context(), Options{ID: id}); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
