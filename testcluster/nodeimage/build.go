// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/images"
)

// build makes the image, with the images of the control plane in it, and its archive. Of several processes one builds
// and the others load.
func build(ctx context.Context, e engine.Engine, r recipe, archive string, progress io.Writer) error {
	if err := canBuild(); err != nil {
		return fmt.Errorf("%w: %s is neither loaded nor can it be pulled, and %w", ErrImage, r.pulled(), err)
	}
	built := false
	err := assets.Once(ctx, archive, progress, func(temp string) error {
		built = true
		say(progress, "%s is not available: building the nodes' image from source (once, some minutes)", r.pulled())
		started := time.Now()
		if err := (builder{engine: e, recipe: r, work: filepath.Dir(temp), progress: progress}).run(ctx, temp); err != nil {
			return fmt.Errorf("%w: %w", ErrImage, err)
		}
		say(progress, "Built %s in %s", r.built(), time.Since(started).Round(time.Second))
		return nil
	})
	if err != nil || built {
		return err
	}
	return load(ctx, e, archive, progress)
}

// canBuild returns what is missing for RunDebootstrap.
func canBuild() error {
	if os.Geteuid() != 0 {
		return errors.New("building it needs root (debootstrap): run once as root")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return errors.New("building it needs debootstrap: apt-get install debootstrap, or hack/engine start")
	}
	return nil
}

type builder struct {
	engine   engine.Engine
	recipe   recipe
	work     string
	progress io.Writer
}

func (b builder) run(ctx context.Context, archive string) error {
	bin, err := b.programs(ctx)
	if err != nil {
		return err
	}
	files, err := assets.ModuleFolder(ctx, kindModule)
	if err != nil {
		return err
	}
	say(b.progress, "  Debian's packages")
	if err := RunDebootstrap(ctx, rootfs, b.work, filepath.Join(files, "images", "base", "files"), bin); err != nil {
		return err
	}
	say(b.progress, "  images of the control plane")
	control := filepath.Join(b.work, "control-plane.tar")
	if err := b.controlPlane(ctx, bin, control); err != nil {
		return err
	}
	if err := b.commit(ctx, control); err != nil {
		return err
	}
	_, err = b.engine.Output(ctx, "save", "--output", archive, b.recipe.built())
	return err
}

func (b builder) programs(ctx context.Context) (string, error) {
	bin := filepath.Join(b.work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return "", err //nolint:wrapcheck // complete
	}
	// A folder of KUBEBUILDER_ASSETS for the control plane may also have a kubectl, of another version: that of the node
	// is first.
	for _, ensure := range []func(context.Context, io.Writer) (assets.Assets, error){assets.EnsureNode, assets.Ensure} {
		assets, err := ensure(ctx, b.progress)
		if err != nil {
			return "", err
		}
		entries, err := os.ReadDir(assets.Dir)
		if err != nil {
			return "", err //nolint:wrapcheck // complete
		}
		for _, entry := range entries {
			err := os.Symlink(filepath.Join(assets.Dir, entry.Name()), filepath.Join(bin, entry.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err //nolint:wrapcheck // complete
			}
		}
	}
	module, err := assets.ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	for _, tool := range tools() {
		run := exec.CommandContext(ctx, filepath.Join(filepath.Dir(module), "tools", "run"), "-path", tool)
		run.Stderr = b.progress
		path, err := run.Output()
		if err != nil {
			return "", fmt.Errorf("build %s: %w", tool, err)
		}
		if err := os.Symlink(strings.TrimSpace(string(path)), filepath.Join(bin, tool)); err != nil {
			return "", err //nolint:wrapcheck // complete
		}
	}
	return bin, os.WriteFile(filepath.Join(bin, "version"), []byte(b.recipe.version), 0o644) //nolint:wrapcheck // complete
}

// RunDebootstrap runs a shell script that makes a file system of Debian's packages with debootstrap.
func RunDebootstrap(ctx context.Context, script string, args ...string) error {
	if err := canBuild(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-s", "--"}, args...)...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the file system: %w:\n%s", err, tail(said.String()))
	}
	return nil
}

func tail(text string) string {
	const lines = 15
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (b builder) controlPlane(ctx context.Context, bin, archive string) error {
	list, err := exec.CommandContext(ctx, filepath.Join(bin, "kubeadm"), "config", "images", "list", "--kubernetes-version", b.recipe.version).Output()
	if err != nil {
		return fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	pause, err := b.pause(ctx)
	if err != nil {
		return err
	}
	var all []images.Image
	for _, name := range append(strings.Fields(string(list)), sandboxImage) {
		image, err := controlPlaneImage(name, bin, pause, filepath.Join(b.work, "kube-proxy.tar"))
		if err != nil {
			return err
		}
		all = append(all, image)
	}
	return images.Write(archive, all...)
}

const sandboxImage = "registry.k8s.io/pause:3.10"

func controlPlaneImage(name, bin, pause, proxyLayer string) (images.Image, error) {
	base, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	image := images.Image{Name: name, Files: map[string]string{"usr/local/bin/" + base: filepath.Join(bin, base)}}
	switch base {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd":
	case "kube-proxy":
		image.Tar = proxyLayer
	case "coredns":
		image.Files, image.Entrypoint = map[string]string{"coredns": filepath.Join(bin, base)}, []string{"/coredns"}
	case "pause":
		image.Files, image.Entrypoint, image.User = map[string]string{"pause": pause}, []string{"/pause"}, images.NonRootUser
	default:
		return images.Image{}, fmt.Errorf("%w: the content of %s is unknown", ErrImage, name)
	}
	return image, nil
}

func (b builder) pause(ctx context.Context) (string, error) {
	module, err := assets.ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	out := filepath.Join(b.work, "pause")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./nodeimage/pause")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pause: %w:\n%s", err, said)
	}
	return out, nil
}

// commit imports the file system, loads the images into its containerd, and commits the result as an image.
func (b builder) commit(ctx context.Context, control string) error {
	base := b.recipe.built() + "-base"
	if _, err := b.engine.Output(ctx, "import", filepath.Join(b.work, "rootfs.tar"), base); err != nil {
		return err
	}
	defer b.remove(ctx, "rmi", base)
	id, err := b.engine.Output(ctx, "run", "--detach", "--security-opt", "seccomp=unconfined",
		"--stop-signal", "SIGRTMIN+3", "--entrypoint", "sleep", base, "infinity") // systemd ends on that signal
	if err != nil {
		return err
	}
	defer b.remove(ctx, "rm", "--force", "--volumes", id)
	if _, err := b.engine.Output(ctx, "exec", "--detach", id, "containerd"); err != nil {
		return err
	}
	const ready = "for i in $(seq 100); do ctr version >/dev/null 2>&1 && exit; sleep 0.1; done; ctr version"
	if _, err := b.engine.Output(ctx, "exec", id, "sh", "-c", ready); err != nil {
		return err
	}
	archive, err := os.Open(control)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	defer func() { _ = archive.Close() }()
	if _, err := b.engine.Pipe(ctx, archive, "exec", "--interactive", id,
		"ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "--no-unpack", "-"); err != nil {
		return err
	}
	if _, err := b.engine.Output(ctx, "exec", id, "sh", "-c", "pkill containerd; while pgrep -x containerd >/dev/null; do sleep 0.1; done"); err != nil {
		return err
	}
	_, err = b.engine.Output(ctx, "commit",
		"--change", `ENTRYPOINT [ "/usr/local/bin/entrypoint", "/sbin/init" ]`, "--change", "ENV container=docker", "--change", "CMD []",
		id, b.recipe.built())
	return err
}

func (b builder) remove(ctx context.Context, args ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := b.engine.Output(ctx, args...); err != nil {
		say(b.progress, "%v", err)
	}
}
