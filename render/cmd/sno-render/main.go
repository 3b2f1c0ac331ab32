// SPDX-License-Identifier: Apache-2.0

// Command sno-render renders the static pods of a control plane.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/render/command"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
