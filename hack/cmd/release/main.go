// SPDX-License-Identifier: Apache-2.0

// Command release checks a commit as other repositories get it, for all released modules or those in the arguments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/hack/release"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	commit := flag.String("commit", "", "the commit to check; empty for the tracked files as they are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ws, err := workspace.Find(".")
	if err == nil {
		err = release.Check{Root: ws.Root, Commit: *commit, Modules: flag.Args(), Out: os.Stdout}.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
