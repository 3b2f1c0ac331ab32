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
	all := flag.Bool("all", false, "print all occurrences of terms of the glossary, not only the first ones")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	work := func() error { return check(ctx, *only, verify.Options{All: *all}, flag.Args()) }
	if *generate {
		work = func() error { return write(ctx, flag.Args()) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, only string, o verify.Options, names []string) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	if err := ws.Focus(names...); err != nil {
		return err
	}
	steps, err := verify.Select(strings.FieldsFunc(only, func(r rune) bool { return r == ',' }))
	if err != nil {
		return err
	}
	failed, err := verify.Run(ctx, ws, steps, os.Stdout, o)
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d steps failed", failed, len(steps))
	}
	return nil
}

func write(ctx context.Context, names []string) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	if err := ws.Focus(names...); err != nil {
		return err
	}
	generated, err := verify.Generate(ctx, ws)
	for _, name := range generated {
		fmt.Println("generated", name)
	}
	return err
}
