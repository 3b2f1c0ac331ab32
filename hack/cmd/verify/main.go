// SPDX-License-Identifier: Apache-2.0

// Command verify runs the checks of `make verify`, for all modules or for those in its arguments. With -generate it
// writes the generated files instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/solonode/sno/hack/verify"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	var names []string
	for _, step := range verify.Steps() {
		names = append(names, step.Name)
	}
	only := flag.String("only", "", "run only these steps, separated by commas: "+strings.Join(names, ","))
	generate := flag.Bool("generate", false, "write the generated files and check nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *generate, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, generate bool, modules []string) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	if !generate {
		return verify.Run(ctx, ws, strings.FieldsFunc(only, func(r rune) bool { return r == ',' }), modules, os.Stdout)
	}
	written, err := verify.Generate(ctx, ws, modules...)
	for _, name := range written {
		fmt.Println("generated", name)
	}
	return err
}
