// SPDX-License-Identifier: Apache-2.0

// Command kube-assets downloads or builds the programs of the embedded cluster when they are missing, and prints their
// folder on standard output, for example to point KUBEBUILDER_ASSETS at it. Progress goes to standard error. With
// -suite the programs are those of Kubernetes' end-to-end tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/testcluster/assets"
)

func main() {
	suite := flag.Bool("suite", false, "e2e.test, agnhost and ginkgo, in place of the programs of the embedded cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ensure := assets.Ensure
	if *suite {
		ensure = assets.EnsureSuite
	}
	assets, err := ensure(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube-assets:", err)
		os.Exit(1)
	}
	fmt.Println(assets.Dir)
}
