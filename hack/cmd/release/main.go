// SPDX-License-Identifier: Apache-2.0

// Command release makes the tags of a release (-version), or checks a commit as other repositories get it (-check), for
// all released modules or those in the arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/solonode/sno/hack/release"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	version := flag.String("version", "", "release this version, such as v0.1.0")
	check := flag.Bool("check", false, "only check a commit")
	commit := flag.String("commit", "", "the commit to check; empty for the tracked files as they are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *version, *check, *commit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version string, only bool, commit string, modules []string) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	check := func(ctx context.Context, commit string) error {
		return release.Check{Root: ws.Root, Commit: commit, Modules: modules, Out: os.Stdout}.Run(ctx)
	}
	switch {
	case only && version == "":
		return check(ctx, commit)
	case only || version == "":
		return errors.New("needs either -check or -version, as `make release VERSION=v0.1.0` sets it")
	case len(modules) > 0:
		return errors.New("all modules are released together; no arguments are allowed with -version")
	}
	verify := func(ctx context.Context, root string) error {
		cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "verify")
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		return cmd.Run()
	}
	return release.Release{Root: ws.Root, Version: version, Out: os.Stdout, Verify: verify, Check: check}.Run(ctx)
}
