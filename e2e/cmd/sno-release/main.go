// SPDX-License-Identifier: Apache-2.0

// Command sno-release builds what a release consists of, without a registry and without a container engine: "images"
// the images of kubectl-sno and of the controllers in one archive, "dist" the downloads. See -help of each.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/e2e/release"
)

const (
	exitDone, exitFailed, exitBadInput, exitInterrupted = 0, 1, 2, 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, progress io.Writer) int {
	commands := map[string]func(*flag.FlagSet, io.Writer, io.Writer) func(context.Context) error{"images": writeImages, "dist": writeDist}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintln(progress, "sno-release: want images or dist")
		return exitBadInput
	}
	set := flag.NewFlagSet("sno-release "+args[0], flag.ContinueOnError)
	set.SetOutput(progress)
	write := commands[args[0]](set, out, progress)
	if err := set.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitBadInput
	}
	if set.NArg() > 0 {
		fmt.Fprintf(progress, "%s: unexpected argument %q; -help lists the flags\n", set.Name(), set.Arg(0))
		return exitBadInput
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := write(ctx)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(progress, "Interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(progress, "%s: %s\n", set.Name(), strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if errors.Is(err, release.ErrInput) || errors.Is(err, release.ErrNames) {
		return exitBadInput
	}
	return exitFailed
}

func writeImages(set *flag.FlagSet, out, progress io.Writer) func(context.Context) error {
	o := release.ImageOptions{Progress: progress}
	folder := set.String("out", filepath.Join("bin", "images"), "`Folder` for the archive "+release.ArchiveName+", the SBOMs and the programs.")
	set.StringVar(&o.Architecture, "arch", runtime.GOARCH, "`Architecture` of the nodes.")
	set.StringVar(&o.Prefix, "prefix", release.UnpullablePrefix, "`Prefix` of the images' names.")
	set.StringVar(&o.Tag, "tag", "", "`Tag` of all images; not latest, which nodes always pull. Empty: a tag by content.")
	return func(ctx context.Context) error {
		rows, err := release.WriteImages(ctx, *folder, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "Load them on every node (podman load -i, docker load -i, ctr -n k8s.io image import) from %s;\nthen: kubectl sno render --image %s\n",
			filepath.Join(*folder, release.ArchiveName), rows[0].Image)
		return release.PrintImages(out, rows)
	}
}

func writeDist(set *flag.FlagSet, out, progress io.Writer) func(context.Context) error {
	folder := set.String("out", "dist", "`Folder` to write; an earlier build in it is replaced.")
	only := set.String("only", "", "Comma-separated `names` of programs. Empty: all with archives or images.")
	platforms := set.String("platforms", "", "Comma-separated `platforms`, as linux/amd64; images are for those of linux. Empty: all of a release.")
	version := set.String("version", "", "`Version`. Empty: that of the tag of this commit, or a pseudo-version.")
	address := set.String("address", "https://github.com/solonode/sno/releases/download/VERSION", "`URL` of the folder with the archives, for krew; VERSION is replaced.")
	check := set.Bool("check", false, "Build again from a copy in another folder, and compare all files. Validate and install the plugin with krew.")
	empty := set.Bool("check-empty-cache", false, "The same, and the second build begins with an empty build cache: some minutes for each platform.")
	return func(ctx context.Context) error {
		started := time.Now()
		o := release.Options{Progress: progress}
		var err error
		if o.Archived, o.Shipped, err = release.Select(list(*only)); err != nil {
			return fmt.Errorf("-only: %w", err)
		}
		if o.Platforms, err = release.ParsePlatforms(list(*platforms)); err != nil {
			return fmt.Errorf("-platforms: %w", err)
		}
		if o.Root, err = programs.Root(ctx); err != nil {
			return err
		}
		if o.Source, err = release.Describe(ctx, o.Root); err != nil {
			return err
		}
		if *version != "" {
			o.Source.Version = *version
		}
		o.Address = strings.ReplaceAll(*address, "VERSION", o.Source.Version)
		fmt.Fprintf(progress, "Version %s, files of %s\n", o.Source.Version, o.Source.Time.Format(time.RFC3339))
		target, err := filepath.Abs(*folder)
		if err != nil {
			return err
		}
		rows, err := release.Write(ctx, target, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "Wrote %s in %s\n", *folder, time.Since(started).Round(100*time.Millisecond))
		if err := release.Print(out, rows); err != nil || !*check && !*empty {
			return err
		}
		if slices.Contains(o.Archived, programs.KubectlSNO) {
			if err := release.CheckKrew(ctx, target, o, rows); err != nil {
				return err
			}
		}
		return release.Check(ctx, target, o, *empty)
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
