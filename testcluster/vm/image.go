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
)

//go:embed image.sh
var recipe string

// ErrImage is returned when there is nothing to boot.
var ErrImage = errors.New("no image for virtual machines")

// Image is a folder of the cache with what machines boot.
type Image struct{ folder string }

// TinyInit is what the init of Tiny prints before it runs the script.
const TinyInit = "sno: init"

// Ensure returns what machines boot, and builds it where it is missing: some minutes, once.
func Ensure(ctx context.Context, progress io.Writer) (Image, error) {
	cache, err := assets.CacheDir()
	if err != nil {
		return Image{}, err
	}
	folder := filepath.Join(filepath.Dir(cache), "vm", assets.Digest(recipe)[:12])
	err = assets.Once(ctx, folder, progress, func(temp string) error {
		if _, err := exec.LookPath("mmdebstrap"); err != nil {
			return fmt.Errorf("%w: there is no mmdebstrap: %s", ErrMissing, install)
		}
		_, _ = fmt.Fprintln(progress, "Building what virtual machines boot from Debian's packages (once, some minutes)")
		started := time.Now()
		if err := os.Mkdir(temp, 0o755); err != nil {
			return err //nolint:wrapcheck // complete
		}
		cmd := exec.CommandContext(ctx, "sh", "-euc", recipe, "image.sh", temp)
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
