// SPDX-License-Identifier: Apache-2.0

// Command kind-cluster makes an empty cluster of real kubelets and prints its kubeconfig on standard output, or removes
// a cluster. See -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/solonode/sno/testcluster/kind"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config := kind.Config{Progress: os.Stderr}
	flag.StringVar(&config.Name, "name", kind.DefaultName, "name of the cluster and prefix of its containers")
	flag.IntVar(&config.ControlPlanes, "control-planes", 1, "control-plane nodes, 1 or 3")
	flag.IntVar(&config.Workers, "workers", 2, "workers")
	flag.BoolVar(&config.ServerTLSBootstrap, "server-tls-bootstrap", false, "make kubelets request their serving certificates")
	remove := flag.Bool("delete", false, "only remove the cluster of that name")
	flag.Parse()
	if err := run(ctx, config, *remove); err != nil {
		fmt.Fprintln(os.Stderr, "kind-cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, config kind.Config, remove bool) error {
	if remove {
		return kind.Delete(ctx, config.Name, config.Progress)
	}
	c, err := kind.Create(ctx, config)
	if err == nil {
		fmt.Println(c.Kubeconfig())
	}
	return err
}
