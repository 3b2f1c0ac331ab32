// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
)

//go:embed image.sh
var recipe string

// ErrImage is returned when there is nothing to boot.
var ErrImage = errors.New("no image for virtual machines")

// Image is a folder of the cache with what machines boot.
type Image struct{ folder string }

// TinyInit is what the init of Tiny prints before it runs the script.
const TinyInit = "sno: init"

// Ensure returns what tiny machines boot, and builds it where it is missing: some minutes, once.
func Ensure(ctx context.Context, progress io.Writer) (Image, error) {
	return ensure(ctx, progress, recipe, nil)
}

// EnsureNode does the same for nodes, with the programs and the images of an image of package nodeimage.
func EnsureNode(ctx context.Context, e engine.Engine, image string, progress io.Writer) (Image, error) {
	return ensure(ctx, progress, recipe+image, func(file *os.File) error {
		cmd := e.Command(ctx, "run", "--rm", "--network=none", "--entrypoint=tar", image, "--create", "--directory=/",
			"usr/bin/kubelet", "usr/bin/kubeadm", "usr/bin/kubectl", "usr/local/bin/crictl", "var/lib/containerd")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = file, &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: take the programs of %s: %w: %s", ErrImage, image, err, said.String())
		}
		return nil
	})
}

func ensure(ctx context.Context, progress io.Writer, key string, pack func(*os.File) error) (Image, error) {
	cache, err := assets.CacheDir()
	if err != nil {
		return Image{}, err
	}
	folder := filepath.Join(filepath.Dir(cache), "vm", assets.Digest(key)[:12])
	err = assets.Once(ctx, folder, progress, func(temp string) error {
		if _, err := exec.LookPath("mmdebstrap"); err != nil {
			return fmt.Errorf("%w: there is no mmdebstrap: %s", ErrMissing, install)
		}
		_, _ = fmt.Fprintln(progress, "Building what virtual machines boot from Debian's packages (once, some minutes)")
		started := time.Now()
		if err := os.Mkdir(temp, 0o755); err != nil {
			return err //nolint:wrapcheck // complete
		}
		arguments := []string{"-euc", recipe, "image.sh", temp}
		if pack != nil {
			file, err := os.CreateTemp("", "sno-node-*.tar")
			if err != nil {
				return err //nolint:wrapcheck // complete
			}
			defer os.Remove(file.Name()) //nolint:errcheck // of this process only
			if err := errors.Join(pack(file), file.Close()); err != nil {
				return err
			}
			arguments = append(arguments, file.Name())
		}
		cmd := exec.CommandContext(ctx, "sh", arguments...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 10*time.Second
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %w:\n%s", ErrImage, errors.Join(ctx.Err(), err), lastLines(said.String(), 15))
		}
		_, _ = fmt.Fprintf(progress, "Built it in %s\n", time.Since(started).Round(time.Second))
		return nil
	})
	return Image{folder: folder}, err
}

// Tiny makes a machine boot Debian's kernel with a tiny initramfs, which prints TinyInit, runs the script that it is
// handed as opt/sno/script, if any, and turns the machine off.
func (i Image) Tiny(c Config) Config {
	c.Kernel, c.Initrd = filepath.Join(i.folder, "vmlinuz"), filepath.Join(i.folder, "tiny.img")
	c.Append = "console=ttyS0 panic=-1"
	return c
}

// Node makes a machine begin with an installed disk. At its first boot Ignition applies the config that it is handed as
// NodeConfig.
func (i Image) Node(c Config) Config {
	c.Image = filepath.Join(i.folder, "disk.raw")
	return c
}

// NodeConfig is the name of the Ignition config among what is handed to a machine.
const NodeConfig = "opt/com.coreos/config"

// ISO is a live medium that installs a node on a disk. It has an area for an Ignition config.
func (i Image) ISO() string { return filepath.Join(i.folder, "live.iso") }
