// SPDX-License-Identifier: Apache-2.0

// Command sno-tests checks how a cluster behaves on a single node. See `sno-tests help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/extension"
)

func main() { os.Exit(run()) }

func run() int {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return extension.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Colour:   term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "",
		Build:    extension.ReadBuild(),
		Provider: fromKubeconfig,
	}.Main(ctx, os.Args[1:])
}

func fromKubeconfig(ctx context.Context, o extension.ClusterOptions) (checks.Target, error) {
	return existing.Target(ctx, existing.Options{
		Kubeconfig: o.Kubeconfig, Scenario: o.Scenario, Image: o.Image, PayloadNamespaces: o.PayloadNamespaces, Tiers: o.Tiers, Progress: o.Progress,
	})
}
