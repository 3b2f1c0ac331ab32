// SPDX-License-Identifier: Apache-2.0

// Command sno-tests checks how a cluster behaves on a single node. See `sno-tests help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"golang.org/x/term"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/conformance/extension"
)

func main() { os.Exit(run()) }

func run() int {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return extension.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Colour:  term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "",
		Build:   extension.ReadBuild(),
		Further: []*cobra.Command{newManPages()},
	}.Main(ctx, os.Args[1:])
}

// newManPages returns a hidden command for packagers.
func newManPages() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write a man page for each command into a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, folder []string) error {
			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Manual: "sno", Source: "sno " + c.Root().Version}, folder[0])
		},
	}
}
