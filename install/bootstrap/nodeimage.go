// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/payload"
	"github.com/solonode/sno/install/phase"
)

// Paths of the node image in the live system, in memory, and of CRI-O's settings.
const (
	nodeImageRepo     = "var/ostreecontainer/repo"
	nodeImageCheckout = "var/ostreecontainer/checkout"
	crioSettings      = "etc/crio/crio.conf.d/50-sno-install.conf"
)

// nodeImageTags are the tags of the image of a node, in OpenShift and in OKD.
var nodeImageTags = []string{"rhel-coreos", "stream-coreos"}

// NodeImagePhases returns the phases that add kubelet, CRI-O and oc of a release to a live system without them
// (U-INS-36). What does not answer is tried again, since systemd would not start the kubelet after a failure.
func NodeImagePhases(o Options) []phase.Phase {
	l := newLive(o)
	return []phase.Phase{
		{Name: "pull", Limit: longer, Run: l.pullNodeImage},
		{Name: "checkout", Limit: long, Done: l.FileExists(nodeImageCheckout), Run: l.checkOutNodeImage},
		{Name: "overlay", Limit: short, Done: l.hasPackages, Run: l.overlayNodeImage},
		{Name: "runtime", Limit: short, Run: l.startRuntime},
	}
}

// hasPackages reports whether the running system has the packages of OpenShift, from its image or from the overlay.
func (l *live) hasPackages(ctx context.Context) (bool, error) {
	err := exec.CommandContext(ctx, "rpm", "-q", "openshift-clients").Run()
	var missing *exec.ExitError
	if errors.As(err, &missing) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // it names the program
}

func (l *live) pullNodeImage(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	repo := l.Path(nodeImageRepo)
	return p.Until(ctx, l.Interval, "the node image of "+s.ReleaseImage, func(ctx context.Context) error { //nolint:wrapcheck // it names the image
		release, err := l.renderer().Release(ctx, s.ReleaseImage)
		if err != nil {
			return final(err)
		}
		image, err := release.ImageOf(nodeImageTags[0])
		if errors.Is(err, payload.ErrTag) {
			image, err = release.ImageOf(nodeImageTags[1])
		}
		if err != nil {
			return final(err)
		}
		if err := os.MkdirAll(repo, 0o755); err != nil { //nolint:gosec // /usr is checked out from it
			return err //nolint:wrapcheck // it names the folder
		}
		if err := l.command(ctx, "ostree", "init", "--mode=bare", "--repo="+repo); err != nil {
			return err
		}
		if refs, err := os.Stat(l.Path("ostree/repo/refs/heads/ostree/container")); err == nil && refs.IsDir() {
			// Layers that the live system has are not downloaded again.
			if err := l.command(ctx, "ostree", "pull-local", "--repo="+repo, l.Path("ostree/repo")); err != nil {
				return err
			}
		}
		return l.command(ctx, "ostree", "container", "image", "pull", "--authfile", l.Path(node.PullSecret), repo, "ostree-unverified-image:docker://"+image)
	})
}

var errNodeImage = errors.New("the node image cannot be used")

// checkOutNodeImage writes the files of the image, all or none. Files of /etc that differ from the live system's image
// are left out: the overlay must not replace them.
func (l *live) checkOutNodeImage(ctx context.Context, _ *phase.Progress) error {
	refs, err := l.output(ctx, "ostree", "refs", "--repo="+l.Path(nodeImageRepo))
	if err != nil {
		return err
	}
	pulled := slices.DeleteFunc(strings.Fields(refs), func(ref string) bool { return !strings.HasPrefix(ref, "ostree/container/image/docker") })
	if len(pulled) != 1 {
		return fmt.Errorf("%w: %s has the images %v, not one", errNodeImage, nodeImageRepo, pulled)
	}
	// In a live system /etc is a mount of its own, where ostree does not find it.
	changed, err := l.output(ctx, "unshare", "--mount", "--propagation", "slave", "sh", "-ec", "mount -o bind,ro /etc /ostree/deploy/*/deploy/*/etc; ostree admin config-diff")
	if err != nil {
		return err
	}
	var skip strings.Builder
	for line := range strings.Lines(changed) {
		if words := strings.Fields(line); len(words) == 2 {
			skip.WriteString("/usr/etc/" + words[1] + "\n")
		}
	}
	part, list := nodeImageCheckout+".part", nodeImageCheckout+".skip"
	if err := l.WriteFiles(files.File{Path: list, Mode: 0o600, Content: []byte(skip.String())}); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := os.RemoveAll(l.Path(part)); err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	if err := l.command(ctx, "ostree", "checkout", "--repo="+l.Path(nodeImageRepo), "--skip-list="+l.Path(list), pulled[0], l.Path(part)); err != nil {
		return err
	}
	return os.Rename(l.Path(part), l.Path(nodeImageCheckout)) //nolint:wrapcheck // it names the folder
}

// overlayNodeImage mounts /usr last: its packages mark the phase as done.
func (l *live) overlayNodeImage(ctx context.Context, _ *phase.Progress) error {
	usr := l.Path(nodeImageCheckout + "/usr")
	for _, c := range [][]string{
		{"rsync", "-a", usr + "/etc/", l.Path("etc")},
		{"mount", "-o", "bind,ro", l.Path("usr/lib/modules"), usr + "/lib/modules"}, // of the running kernel
		{"mount", "-o", "rbind,ro", usr, l.Path("usr")},
	} {
		if err := l.command(ctx, c[0], c[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// startRuntime gives CRI-O the release's image for pods, and starts what waits for it.
func (l *live) startRuntime(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return p.Until(ctx, l.Interval, "the container runtime", func(ctx context.Context) error { //nolint:wrapcheck // it names the program
		release, err := l.renderer().Release(ctx, s.ReleaseImage)
		if err != nil {
			return final(err)
		}
		image, err := release.ImageOf("pod")
		if err != nil {
			return final(err)
		}
		settings := fmt.Appendf(nil, "[crio.image]\npause_image = %q\npause_command = \"/usr/bin/pod\"\n", image)
		if err := l.WriteFiles(files.File{Path: crioSettings, Mode: 0o644, Content: settings}); err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		for _, c := range [][]string{
			{"semodule", "-R"}, {"systemctl", "daemon-reload"},
			{"systemctl", "--no-block", "restart", "crio.service"}, {"systemctl", "--no-block", "start", "kubelet.service", "bootkube.service"},
		} {
			if err := l.command(ctx, c[0], c[1:]...); err != nil {
				return err
			}
		}
		return nil
	})
}

// output runs a program and returns what it prints.
func (l *live) output(ctx context.Context, name string, arguments ...string) (string, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %w: %s", filepath.Base(name), arguments, errProgram, err, bytes.TrimSpace(errs.Bytes()))
	}
	return string(out), nil
}
