// SPDX-License-Identifier: Apache-2.0

// Command sno-install installs a single node.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/install/command"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
