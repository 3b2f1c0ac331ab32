// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/solonode/sno/testcluster/engine"
)

// ErrImage is returned when no image for nodes is available.
var ErrImage = errors.New("no image for nodes")

const (
	// askTimeout bounds the query whether a registry has the image, which takes a second.
	askTimeout  = 8 * time.Second
	pullTimeout = 10 * time.Minute
)

// Ensure returns the name of an image in the engine, and its Kubernetes version, such as v1.35.2.
func Ensure(ctx context.Context, e engine.Engine, progress io.Writer) (image, version string, err error) {
	r, err := readRecipe(ctx)
	if err != nil {
		return "", "", err
	}
	image, err = r.ensure(ctx, e, progress)
	return image, r.version, err
}

// ensure uses a loaded image, a kept archive, an image that can be pulled, or builds one, in this order.
func (r recipe) ensure(ctx context.Context, e engine.Engine, progress io.Writer) (image string, err error) {
	for _, image := range []string{r.pulled(), r.built()} {
		if there, err := e.HasImage(ctx, image); err != nil || there {
			return image, err
		}
	}
	if _, err := os.Stat(r.archive()); err == nil {
		return r.built(), load(ctx, e, r.archive(), progress)
	}
	if pull(ctx, e, r.pulled(), progress) {
		return r.pulled(), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w: %w", ErrImage, ctx.Err())
	}
	return r.built(), build(ctx, e, r, r.archive(), progress)
}

func load(ctx context.Context, e engine.Engine, archive string, progress io.Writer) error {
	say(progress, "Loading the nodes' image from %s", archive)
	if _, err := e.Output(ctx, "load", "--quiet", "--input", archive); err != nil {
		return fmt.Errorf("%w: %w (if the archive is broken, delete it: it will be built again)", ErrImage, err)
	}
	return nil
}

func pull(ctx context.Context, e engine.Engine, image string, progress io.Writer) bool {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := e.Output(asking, "manifest", "inspect", image); err != nil {
		return false
	}
	say(progress, "Pulling %s", image)
	pulling, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	_, err := e.Output(pulling, "pull", "--quiet", image)
	return err == nil
}

func say(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, format+"\n", args...)
}
