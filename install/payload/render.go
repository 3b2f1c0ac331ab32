// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/solonode/sno/render/files"
)

var (
	// ErrFlag is in the error of a render command without a flag that it needs.
	ErrFlag = errors.New("the command has no such flag: this release renders in another way")
	// ErrCommand is in the error of a command that failed. A pull, or one that hangs, can be repeated.
	ErrCommand = errors.New("the command failed")
	// ErrRefused is in the error of a render that ended with an error of its own.
	ErrRefused = errors.New("the render refuses its input")
)

// DefaultLimit is the time limit of one render, with the pull of its image.
const DefaultLimit = 10 * time.Minute

// Renderer runs the renders of a release.
type Renderer struct {
	// Podman is the program, and PullSecret the file for pulls.
	Podman, PullSecret string
	// Assets is the absolute path of the folder with manifests/, tls/ and auth/, which containers have as /assets.
	Assets string
	// Output is for what the commands print.
	Output io.Writer
	// Limit of one render; 0 is DefaultLimit.
	Limit time.Duration

	// execute runs podman; tests set it.
	execute func(ctx context.Context, stdout, stderr io.Writer, arguments ...string) error
}

// Release reads the release payload into the assets, and returns it. What is there is not read again.
func (r Renderer) Release(ctx context.Context, image string) (*Release, error) {
	texts := map[string][]byte{}
	for _, name := range []string{metadata, references} {
		text, err := os.ReadFile(filepath.Join(r.Assets, name))
		if errors.Is(err, os.ErrNotExist) {
			text, _, err = r.podman(ctx, "run", "--quiet", "--rm", "--net=none", "--authfile", r.PullSecret, "--entrypoint", "cat", image, "/release-manifests/"+name)
			if err == nil {
				err = r.write(files.File{Path: name, Mode: 0o600, Content: text})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("release image %s: %w", image, err)
		}
		texts[name] = text
	}
	return Parse(image, texts[metadata], texts[references])
}

// Render runs the renders that have not run yet, in order, and puts their files into manifests/, tls/ and
// bootstrap-manifests/. Each writes its whole folder or nothing, so a call that was interrupted can be repeated. An
// error has the name of the render, its image and the file or the flag at fault.
func (r Renderer) Render(ctx context.Context, release *Release, progress func(name string)) error {
	if err := checkInputs(os.DirFS(r.Assets)); err != nil {
		return fmt.Errorf("before the renders: %w", err)
	}
	all := objects{}
	given, err := listed(filepath.Join(r.Assets, manifestDir))
	if err != nil {
		return err
	}
	for _, name := range given {
		content, err := os.ReadFile(name)
		if err == nil {
			err = all.add(manifestDir+"/"+filepath.Base(name), content)
		}
		if err != nil {
			return fmt.Errorf("before the renders: %w", err)
		}
	}
	for _, s := range steps {
		progress(s.name)
		image := release.Image
		if s.tag != "" {
			var err error
			if image, err = release.ImageOf(s.tag); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if err := r.step(ctx, release, s, image, all); err != nil {
			return fmt.Errorf("%s of image %s: %w", s.name, image, err)
		}
	}
	return nil
}

func (r Renderer) step(ctx context.Context, release *Release, s step, image string, all objects) error {
	output := filepath.Join(r.Assets, s.output)
	if _, err := os.Stat(output); errors.Is(err, os.ErrNotExist) {
		if err := r.render(ctx, release, s, image); err != nil {
			return err
		}
	} else if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	for _, c := range s.copies {
		if err := r.copy(s, c[0], c[1], all); err != nil {
			return err
		}
	}
	return nil
}

// render writes the folder of a render.
func (r Renderer) render(ctx context.Context, release *Release, s step, image string) error {
	limit := r.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: it has not ended after %s", ErrCommand, limit))
	defer cancel()
	part := s.output + ".part"
	if err := errors.Join(os.RemoveAll(filepath.Join(r.Assets, part)), os.MkdirAll(filepath.Join(r.Assets, part), 0o700)); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	if s.name == "api-render" {
		if err := r.copyInput(filepath.Join(part, apiInput)); err != nil {
			return err
		}
	}
	arguments, err := r.arguments(ctx, release, s, image, part)
	if err != nil {
		return err
	}
	run := []string{"run", "--quiet", "--net=host", "--rm", "--replace", "--name", s.name, "--volume", r.Assets + ":" + assetsVolume + ":z", "--authfile", r.PullSecret}
	if s.root {
		run = append(run, "--user", "0")
	}
	if _, _, err := r.podman(ctx, append(append(run, image), arguments...)...); err != nil {
		return err
	}
	if s.name == "api-render" {
		// The other manifests are in their place already.
		if err := onlyFeatureGate(filepath.Join(r.Assets, part, apiInput)); err != nil {
			return err
		}
	}
	if err := checkOutput(os.DirFS(filepath.Join(r.Assets, part)), s.must); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(r.Assets, part), filepath.Join(r.Assets, s.output)); err != nil {
		return fmt.Errorf("accept its output: %w", err)
	}
	return nil
}

// copyInput copies the manifests for a render that rewrites one of them.
func (r Renderer) copyInput(to string) error {
	names, err := listed(filepath.Join(r.Assets, manifestDir))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		if err := r.write(files.File{Path: filepath.Join(to, filepath.Base(name)), Mode: 0o600, Content: content}); err != nil {
			return err
		}
	}
	return nil
}

func onlyFeatureGate(folder string) error {
	names, err := listed(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if filepath.Base(name) != filepath.Base(featureGate) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// copy puts the files of a folder into one of the assets. A file of another source is not replaced, except the
// FeatureGate, whose status the API's render adds.
func (r Renderer) copy(s step, from, to string, all objects) error {
	names, err := listed(filepath.Join(r.Assets, s.output, from))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		f := files.File{Path: to + "/" + filepath.Base(name), Mode: 0o600, Content: content}
		there, err := os.ReadFile(filepath.Join(r.Assets, f.Path))
		if err == nil && f.Path != featureGate && !bytes.Equal(there, content) {
			return fmt.Errorf("%s: %w by %s and a file that was there before", f.Path, ErrDifferent, s.name)
		}
		if to == manifestDir {
			if err := all.add(f.Path, content); err != nil {
				return err
			}
		}
		if err := r.write(f); err != nil {
			return err
		}
	}
	return nil
}

func (r Renderer) write(f files.File) error {
	root, err := os.OpenRoot(r.Assets)
	if err != nil {
		return err //nolint:wrapcheck // it names the folder
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	_, err = files.Update(root, f)
	return err //nolint:wrapcheck // it names the file
}

// helped matches a flag in the help of cobra and of package flag.
var helped = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--?([a-z0-9][a-z0-9-]*)`)

// arguments returns the command with the flags that it knows, by its own help.
func (r Renderer) arguments(ctx context.Context, release *Release, s step, image, part string) ([]string, error) {
	// Package flag prints the help to standard error and may end with 2, cobra does neither.
	out, errs, err := r.podman(ctx, append([]string{"run", "--quiet", "--net=none", "--rm", "--authfile", r.PullSecret, image}, append(s.command, "--help")...)...)
	known := map[string]bool{}
	for _, match := range helped.FindAllStringSubmatch(string(out)+"\n"+string(errs), -1) {
		known[match[1]] = true
	}
	if len(known) == 0 && err != nil && !errors.Is(err, ErrRefused) {
		return nil, err // the image could not be pulled
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%v --help lists no flags: %w", s.command, errors.Join(ErrFlag, err))
	}
	arguments := append([]string{}, s.command...)
	for _, f := range s.flags {
		switch {
		case known[f.name]:
			value, err := release.resolve(f.value, s, part)
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", f.name, err)
			}
			arguments = append(arguments, "--"+f.name+"="+value)
		case !f.optional:
			return nil, fmt.Errorf("%v --%s: %w", s.command, f.name, ErrFlag)
		}
	}
	return arguments, nil
}

var tagged = regexp.MustCompile(`^TAG\((.*)\)$`)

func (r *Release) resolve(value string, s step, part string) (string, error) {
	switch value {
	case "SELF":
		return r.ImageOf(s.tag)
	case "VERSION":
		return r.Version, nil
	case "KUBERNETES":
		return r.KubernetesVersion, nil
	case "RELEASE":
		return r.Image, nil
	}
	if match := tagged.FindStringSubmatch(value); match != nil {
		return r.ImageOf(match[1])
	}
	return strings.Replace(value, "OUT", assetsVolume+"/"+part, 1), nil
}

// podman returns what a command prints, also if it fails. The error has the last line.
func (r Renderer) podman(ctx context.Context, arguments ...string) (out, errs []byte, err error) {
	var stdout, stderr bytes.Buffer
	execute := r.execute
	if execute == nil {
		execute = r.program
	}
	err = execute(ctx, &stdout, io.MultiWriter(r.Output, &stderr), arguments...)
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(stdout.String()+stderr.String()), "\n")
		why := ErrCommand
		// 125 is podman's own, as for a pull.
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() != 125 {
			why = fmt.Errorf("%w: %w", ErrCommand, ErrRefused)
		}
		err = fmt.Errorf("%w: %w: %s", why, err, strings.TrimSpace(lines[len(lines)-1]))
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

func (r Renderer) program(ctx context.Context, stdout, stderr io.Writer, arguments ...string) error {
	c := exec.CommandContext(ctx, r.Podman, arguments...)
	c.WaitDelay, c.Stdout, c.Stderr = time.Second, stdout, stderr
	return c.Run() //nolint:wrapcheck // it is wrapped with the output
}
