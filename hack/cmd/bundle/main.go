// SPDX-License-Identifier: Apache-2.0

// Command bundle writes the files with which the Operator Lifecycle Manager installs config/all, and checks them:
// bundle/, bundle.Dockerfile, catalog/ and catalog.Dockerfile. See -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/solonode/sno/hack/bundle"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	var o bundle.Options
	out := flag.String("out", ws.Root, "Folder to write to; the four files and folders in it are replaced.")
	flag.StringVar(&o.Image, "image", "", "Image of kubectl-sno by digest, as its registry has it: REGISTRY/NAME@sha256:DIGEST.")
	flag.StringVar(&o.BundleImage, "bundle-image", "", "Image of the bundle by digest, for the catalogue; without it no catalogue is written.")
	flag.StringVar(&o.Version, "version", file.Release.Version, "Version of the release.")
	flag.StringVar(&o.Architecture, "arch", runtime.GOARCH, "Architecture of the image.")
	previous := flag.String("previous", "", "Catalogue of the previous release, to which this one is added.")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", bundle.ErrOptions, flag.Arg(0))
	}
	if *previous != "" {
		if o.Previous, err = os.ReadFile(*previous); err != nil {
			return err
		}
	}
	committed, err := workspace.Output(ws.Command(ctx, ".", "git", "log", "-1", "--format=%cI"))
	if err != nil {
		return err
	}
	if o.Created, err = time.Parse(time.RFC3339, strings.TrimSpace(string(committed))); err != nil {
		return fmt.Errorf("reading the time of the last commit: %w", err)
	}
	rendered, err := workspace.Output(ws.Command(ctx, ".", ws.Path("tools/run"), "kustomize", "build", "config/all"))
	if err != nil {
		return err
	}
	m, err := bundle.Parse(string(rendered))
	if err != nil {
		return err
	}
	files, err := bundle.Files(m, o)
	if err != nil {
		return err
	}
	if err := bundle.Write(*out, files); err != nil {
		return err
	}
	fmt.Println("wrote bundle/ and what belongs to it to", *out)
	faults, err := bundle.Check(*out)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the bundle has faults:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}
