// SPDX-License-Identifier: Apache-2.0

// Command sno-images builds the images of kubectl-sno and of the controllers into one archive, without an engine and
// without a registry. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/solonode/sno/e2e/release"
)

const (
	exitDone, exitFailed, exitBadInput, exitInterrupted = 0, 1, 2, 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, progress io.Writer) int {
	o := release.Options{Progress: progress}
	flags := flag.NewFlagSet("sno-images", flag.ContinueOnError)
	flags.SetOutput(progress)
	folder := flags.String("out", filepath.Join("bin", "images"), "Folder for the archive "+release.ArchiveName+", the SBOMs and the programs.")
	flags.StringVar(&o.Architecture, "arch", runtime.GOARCH, "Architecture of the nodes.")
	flags.StringVar(&o.Prefix, "prefix", release.UnpullablePrefix, "Prefix of the images' names.")
	flags.StringVar(&o.Tag, "tag", "", "Tag of all images; not latest, which nodes always pull. Empty: a tag by content.")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitBadInput
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(progress, "sno-images: unexpected argument %q; -help lists the flags\n", flags.Arg(0))
		return exitBadInput
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := release.Write(ctx, *folder, o)
	if err == nil {
		err = release.Print(out, rows)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(progress, "Interrupted")
		return exitInterrupted
	case errors.Is(err, release.ErrNames):
		fmt.Fprintln(progress, "sno-images: -prefix, -tag:", err)
		return exitBadInput
	default:
		fmt.Fprintln(progress, "sno-images:", err)
		return exitFailed
	}
	fmt.Fprintf(progress, "Load them on every node (podman load -i, docker load -i, ctr -n k8s.io image import) from %s;\nthen: kubectl sno render --image %s\n",
		filepath.Join(*folder, release.ArchiveName), rows[0].Image)
	return exitDone
}
