// SPDX-License-Identifier: Apache-2.0

// Command mutants tries the mutants of the named modules (all without names) and fails if a test does not detect one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/solonode/sno/hack/mutants"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	only := flag.String("run", "", "try only the mutants whose module/name matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, names []string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	modules, err := ws.Select(names...)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		modules = slices.DeleteFunc(slices.Clone(ws.Modules), func(m workspace.Module) bool {
			_, err := os.Stat(ws.Path(m.Dir + "/" + mutants.FileName))
			return err != nil
		})
	}
	var dirs []string
	for _, m := range modules {
		dirs = append(dirs, ws.Path(m.Dir))
	}
	return mutants.Run(ctx, dirs, pattern, os.Stdout)
}
