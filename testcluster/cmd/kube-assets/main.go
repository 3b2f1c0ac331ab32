// SPDX-License-Identifier: Apache-2.0

// Command kube-assets downloads or builds the programs of the embedded cluster when they are missing, and prints their
// folder on standard output, for example to point KUBEBUILDER_ASSETS at it. Progress goes to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/testcluster/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	assets, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube-assets:", err)
		os.Exit(1)
	}
	fmt.Println(assets.Dir)
}
