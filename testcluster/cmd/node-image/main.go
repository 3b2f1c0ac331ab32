// SPDX-License-Identifier: Apache-2.0

// Command node-image makes the image of kind's nodes if the container engine has none, and prints its name on
// standard output. The engine keeps the image. Progress goes to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node-image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	e, err := engine.Find(ctx)
	if err != nil {
		return fmt.Errorf("find a container engine: %w", err)
	}
	image, _, err := nodeimage.Ensure(ctx, e, os.Stderr)
	if err != nil {
		return fmt.Errorf("make the image of nodes: %w", err)
	}
	fmt.Println(image)
	return nil
}
