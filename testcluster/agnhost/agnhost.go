// SPDX-License-Identifier: Apache-2.0

package agnhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/images"
)

//go:embed rootfs.sh
var rootfs string

// ErrImage is returned when the image cannot be made.
var ErrImage = errors.New("no image agnhost")

const (
	// recipeVersion changes when this package changes the content of the image.
	recipeVersion = "1"
	lockRetry     = 500 * time.Millisecond
	// shown is how much of a failed command's output an error has.
	shown = 2000
)

// Ensure returns an archive with the image under the given names. Each name is an image of its own, which differs from
// the others in the file NAME, because a node reports an image with several names by any of them. Progress may be nil.
func Ensure(ctx context.Context, suite assets.Assets, names []string, progress io.Writer) (archive string, err error) {
	if progress == nil {
		progress = io.Discard
	}
	_, key, err := assets.SuiteKey(ctx)
	if err != nil {
		return "", err
	}
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	archive = filepath.Join(filepath.Dir(cache), "agnhost", digest(key, rootfs, strings.Join(names, " "))+".tar")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	lock := flock.New(archive + ".lock")
	if locked, err := lock.TryLockContext(ctx, lockRetry); err != nil || !locked {
		return "", fmt.Errorf("wait for the lock %s.lock: %w", archive, errors.Join(err, ctx.Err()))
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	if err := build(ctx, suite, names, archive, progress); err != nil {
		return "", fmt.Errorf("%w: %w", ErrImage, err)
	}
	return archive, nil
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range append(parts, recipeVersion) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

func build(ctx context.Context, suite assets.Assets, names []string, archive string, progress io.Writer) error {
	work, err := os.MkdirTemp(filepath.Dir(archive), "building-")
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	layer := filepath.Join(filepath.Dir(archive), "rootfs-"+digest(rootfs)+".tar")
	if err := fileSystem(ctx, work, layer, progress); err != nil {
		return err
	}
	folder, err := assets.SuiteFolder(ctx)
	if err != nil {
		return err
	}
	certificate := filepath.Join(folder, "test", "images", "agnhost", "porter", "localhost")
	var all []images.Image
	for i, name := range names {
		label := filepath.Join(work, fmt.Sprintf("name-%d", i))
		if err := os.WriteFile(label, []byte(name+"\n"), 0o600); err != nil {
			return err //nolint:wrapcheck // complete
		}
		all = append(all, images.Image{
			Name: name, Entrypoint: []string{"/agnhost"}, Command: []string{"pause"},
			Tar:   layer,
			Files: map[string]string{"agnhost": suite.Program("agnhost")},
			Data:  map[string]string{"localhost.crt": certificate + ".crt", "localhost.key": certificate + ".key", "NAME": label},
		})
	}
	return images.Write(archive, all...)
}

// fileSystem makes the layer with the file system, which does not change with the version of Kubernetes.
func fileSystem(ctx context.Context, work, layer string, progress io.Writer) error {
	if _, err := os.Stat(layer); err == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("building it needs root (debootstrap): run once as root") //nolint:err113 // printed only
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return fmt.Errorf("building it needs debootstrap: apt-get install debootstrap, or hack/engine start: %w", err)
	}
	fmt.Fprintln(progress, "Building the image agnhost from Debian's packages (once, some minutes)")
	started := time.Now()
	cmd := exec.CommandContext(ctx, "sh", "-s", "--", work)
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(rootfs), &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		text := output.String()
		return fmt.Errorf("make the file system: %w:\n%s", err, text[max(0, len(text)-shown):])
	}
	fmt.Fprintf(progress, "Built the file system of agnhost in %s\n", time.Since(started).Round(time.Second))
	return os.Rename(filepath.Join(work, "rootfs.tar"), layer) //nolint:wrapcheck // names both
}
