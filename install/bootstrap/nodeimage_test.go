// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const nodeReferences = `{"spec":{"tags":[{"name":"hyperkube","annotations":{"io.openshift.build.versions":"kubernetes=1.35.2"},"from":{"name":"registry.example.com/hyperkube@sha256:01"}},
{"name":"%s","from":{"name":"registry.example.com/node@sha256:02"}},{"name":"pod","from":{"name":"registry.example.com/pod@sha256:03"}}]}}`

// coreOS is a live system whose programs are a script. It fails at call number failAt.
type coreOS struct {
	*machine
	bin string
}

func newCoreOS(t *testing.T, tag string) *coreOS {
	t.Helper()
	c := &coreOS{newMachine(t), t.TempDir()}
	c.podman(t, strings.Replace(contents, references, fmt.Sprintf(nodeReferences, tag), 1))
	fixture.Put(t, c.root, "ostree/repo/refs/heads/ostree/container/base", "")
	text := `cd "` + c.bin + `"
name=$(basename "$0"); echo "$name $*" >>calls
[ "$(wc -l <calls)" != "$(cat fail-at 2>/dev/null)" ] || { echo "no network" >&2; exit 1; }
case "$name $*" in
  rpm*) test -e overlaid ;;
  "ostree refs"*) echo "ostree/container/blob/a"; echo "ostree/container/image/docker_3A__2F__2Fnode"; cat more-refs 2>/dev/null || true ;;
  unshare*) printf 'M    hostname\nA    crio/own.conf\n' ;;
  "ostree checkout"*) for last; do :; done; mkdir -p "$last/usr" ;;
  mount*rbind*) touch overlaid ;;
esac`
	for _, name := range []string{"rpm", "ostree", "unshare", "rsync", "mount", "semodule", "systemctl"} {
		fixture.Script(t, c.bin, name, "set -e\n"+text)
	}
	t.Setenv("PATH", c.bin+":"+os.Getenv("PATH"))
	return c
}

// run returns the calls of programs, with paths below the root, and without those that only read.
func (c *coreOS) run(t *testing.T) ([]string, error) {
	t.Helper()
	fixture.Put(t, c.bin, "calls", "")
	err := phase.Run(t.Context(), NodeImagePhases(c.Options), phase.Options{})
	text, readErr := os.ReadFile(filepath.Join(c.bin, "calls"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	calls := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), c.root, "")), "\n")
	return slices.DeleteFunc(calls, func(call string) bool { return strings.HasPrefix(call, "rpm") }), err
}

// A live system without kubelet and CRI-O gets those of the release before the kubelet starts, and one that has them is
// not changed (U-INS-36).
func TestNodeImage(t *testing.T) {
	for _, tag := range []string{"rhel-coreos", "stream-coreos"} {
		c := newCoreOS(t, tag)
		got := fixture.Must(c.run(t))
		start := []string{"semodule -R", "systemctl daemon-reload", "systemctl --no-block restart crio.service", "systemctl --no-block start kubelet.service bootkube.service"}
		want := append([]string{
			"ostree init --mode=bare --repo=/var/ostreecontainer/repo", "ostree pull-local --repo=/var/ostreecontainer/repo /ostree/repo",
			"ostree container image pull --authfile /" + node.PullSecret + " /var/ostreecontainer/repo ostree-unverified-image:docker://registry.example.com/node@sha256:02",
			"ostree refs --repo=/var/ostreecontainer/repo",
			"unshare --mount --propagation slave sh -ec mount -o bind,ro /etc /ostree/deploy/*/deploy/*/etc; ostree admin config-diff",
			"ostree checkout --repo=/var/ostreecontainer/repo --skip-list=/var/ostreecontainer/checkout.skip ostree/container/image/docker_3A__2F__2Fnode /var/ostreecontainer/checkout.part",
			"rsync -a /var/ostreecontainer/checkout/usr/etc/ /etc", "mount -o bind,ro /usr/lib/modules /var/ostreecontainer/checkout/usr/lib/modules",
			"mount -o rbind,ro /var/ostreecontainer/checkout/usr /usr",
		}, start...)
		fixture.Equal(t, tag, want, got)
		for name, want := range map[string]string{
			nodeImageCheckout + ".skip": "/usr/etc/hostname\n/usr/etc/crio/own.conf\n",
			crioSettings:                "[crio.image]\npause_image = \"registry.example.com/pod@sha256:03\"\npause_command = \"/usr/bin/pod\"\n",
		} {
			if text, err := os.ReadFile(filepath.Join(c.root, name)); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		if got, err := c.run(t); err != nil || !slices.Equal(got, start) {
			t.Errorf("a live system with the packages: %v, %v", got, err)
		}
	}
}

// After a failure of any program the same command continues; /usr is mounted once, from a whole checkout. A network that
// comes late is waited for.
func TestNodeImageFails(t *testing.T) {
	for failAt := 2; ; failAt++ {
		c := newCoreOS(t, "rhel-coreos")
		fixture.Put(t, c.bin, "fail-at", fmt.Sprint(failAt))
		first, err := c.run(t)
		fixture.NoError(t, os.Remove(filepath.Join(c.bin, "fail-at")))
		if err != nil && !errors.Is(err, errProgram) && !errors.Is(err, phase.ErrNotDone) {
			t.Fatalf("failure %d: %v", failAt, err)
		}
		second, err := c.run(t)
		if err != nil {
			t.Fatalf("after failure %d: %v", failAt, err)
		}
		mounted := 0
		for _, call := range append(first, second...) {
			if strings.Contains(call, "rbind") {
				mounted++
			}
		}
		all := strings.Join(append(first, second...), "\n")
		if failed := strings.Count(all, "rsync"); mounted < 1 || mounted > 2 || failed < 1 {
			t.Errorf("failure %d: mounted %d times:\n%s", failAt, mounted, all)
		}
		if len(first) < failAt-1 && failAt > 14 {
			return
		}
	}
}

// A release without a node image, or a repository with two, is an error that names it.
func TestNodeImageMissing(t *testing.T) {
	c := newCoreOS(t, "other")
	if _, err := c.run(t); phase.ExitCode(err) != phase.ExitInput || !strings.Contains(err.Error(), "no image of this name: stream-coreos") || !strings.Contains(err.Error(), release) {
		t.Errorf("no image: %v", err)
	}
	c = newCoreOS(t, "rhel-coreos")
	fixture.Put(t, c.bin, "more-refs", "ostree/container/image/docker_3A__2F__2Fother\n")
	if calls, err := c.run(t); !errors.Is(err, errNodeImage) || slices.ContainsFunc(calls, func(s string) bool { return strings.HasPrefix(s, "mount") }) {
		t.Errorf("two images: %v, %v", calls, err)
	}
}
