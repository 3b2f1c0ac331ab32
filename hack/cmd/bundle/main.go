// SPDX-License-Identifier: Apache-2.0

// Command bundle writes the files with which the Operator Lifecycle Manager installs config/all, and checks them:
// bundle/, bundle.Dockerfile, catalog/ and catalog.Dockerfile. See -help.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solonode/sno/hack/bundle"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

var errFaults = errors.New("the bundle has faults")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, bundle.ErrOptions):
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	var o bundle.Options
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	out := flags.String("out", ws.Root, "Folder to write to; the four files and folders in it are replaced.")
	flags.StringVar(&o.Image, "image", "", "Image of kubectl-sno by digest, as its registry has it: REGISTRY/NAME@sha256:DIGEST.")
	flags.StringVar(&o.BundleImage, "bundle-image", "", "Image of the bundle by digest, for the catalogue; without it no catalogue is written.")
	flags.StringVar(&o.Version, "version", file.Release.Version, "Version of the release.")
	flags.StringVar(&o.Architecture, "arch", runtime.GOARCH, "Architecture of the image.")
	previous := flags.String("previous", "", "Catalogue of the previous release, to which this one is added.")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", bundle.ErrOptions, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", bundle.ErrOptions, flags.Arg(0))
	}
	if *previous != "" {
		if o.Previous, err = os.ReadFile(*previous); err != nil {
			return err
		}
	}
	committed, err := output(ws.Command(ctx, ".", "git", "log", "-1", "--format=%cI"))
	if err != nil {
		return err
	}
	if o.Created, err = time.Parse(time.RFC3339, strings.TrimSpace(committed)); err != nil {
		return fmt.Errorf("reading the time of the last commit: %w", err)
	}
	rendered, err := output(ws.Command(ctx, ".", ws.Path("tools/run"), "kustomize", "build", "config/all"))
	if err != nil {
		return err
	}
	m, err := bundle.Parse(rendered)
	if err != nil {
		return err
	}
	files, err := bundle.Files(m, o)
	if err != nil {
		return err
	}
	if err := write(*out, files); err != nil {
		return err
	}
	faults, err := bundle.Check(*out)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w:\n%s", errFaults, strings.Join(faults, "\n"))
	}
	return nil
}

func output(command *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

func write(folder string, files map[string][]byte) error {
	for _, old := range []string{"bundle", "catalog"} {
		if err := os.RemoveAll(filepath.Join(folder, old)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, files[name], 0o644)); err != nil {
			return err
		}
		fmt.Println("wrote", name)
	}
	return nil
}
