// SPDX-License-Identifier: Apache-2.0

// Command sno-dist builds what a release has for downloads, without a registry. See -help.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solonode/sno/e2e/dist"
	"github.com/solonode/sno/e2e/programs"
)

const (
	exitDone, exitFailed, exitBadInput, exitInterrupted = 0, 1, 2, 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type flags struct {
	out, only, platforms, version, address string
	check, empty                           bool
}

func run(args []string, out, progress io.Writer) int {
	var f flags
	set := flag.NewFlagSet("sno-dist", flag.ContinueOnError)
	set.SetOutput(progress)
	set.StringVar(&f.out, "out", "dist", "`Folder` to write; an earlier build in it is replaced.")
	set.StringVar(&f.only, "only", "", "Comma-separated `names` of programs. Empty: all with archives or images.")
	set.StringVar(&f.platforms, "platforms", "", "Comma-separated `platforms`, as linux/amd64; images are for those of linux. Empty: all of a release.")
	set.StringVar(&f.version, "version", "", "Version. Empty: that of the tag of this commit, or a pseudo-version.")
	set.StringVar(&f.address, "address", "https://github.com/solonode/sno/releases/download/VERSION",
		"`URL` of the folder with the archives, for krew; VERSION is replaced.")
	set.BoolVar(&f.check, "check", false, "Build again from a copy in another folder, and compare all files. Validate and install the plugin with krew.")
	set.BoolVar(&f.empty, "check-empty-cache", false, "The same, and the second build begins with an empty build cache: some minutes for each platform.")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitBadInput
	}
	if set.NArg() > 0 {
		fmt.Fprintf(progress, "sno-dist: unexpected argument %q; -help lists the flags\n", set.Arg(0))
		return exitBadInput
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := f.write(ctx, out, progress)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(progress, "Interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(progress, "sno-dist:", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if errors.Is(err, dist.ErrInput) {
		return exitBadInput
	}
	return exitFailed
}

func (f flags) write(ctx context.Context, out, progress io.Writer) error {
	started := time.Now()
	o := dist.Options{Progress: progress}
	var err error
	if o.Archived, o.Shipped, err = dist.Select(list(f.only)); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if o.Platforms, err = dist.ParsePlatforms(list(f.platforms)); err != nil {
		return fmt.Errorf("-platforms: %w", err)
	}
	if o.Root, err = programs.Root(ctx); err != nil {
		return err
	}
	if o.Source, err = dist.Describe(ctx, o.Root); err != nil {
		return err
	}
	if f.version != "" {
		o.Source.Version = f.version
	}
	o.Address = strings.ReplaceAll(f.address, "VERSION", o.Source.Version)
	fmt.Fprintf(progress, "Version %s, files of %s\n", o.Source.Version, o.Source.Time.Format(time.RFC3339))
	folder, err := filepath.Abs(f.out)
	if err != nil {
		return err
	}
	rows, err := dist.Write(ctx, folder, o)
	if err != nil {
		return err
	}
	if err := dist.Print(out, rows); err != nil {
		return err
	}
	fmt.Fprintf(progress, "Wrote %s in %s\n", f.out, time.Since(started).Round(100*time.Millisecond))
	if !f.check && !f.empty {
		return nil
	}
	if slices.Contains(o.Archived, programs.KubectlSNO) {
		if err := dist.CheckKrew(ctx, folder, o, rows); err != nil {
			return err
		}
	}
	return dist.Check(ctx, folder, o, f.empty)
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
