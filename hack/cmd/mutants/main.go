// SPDX-License-Identifier: Apache-2.0

// Command mutants tries the mutants of all modules and fails if a test does not detect one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/solonode/sno/hack/mutants"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	only := flag.String("run", "", "try only the mutants whose module/name matches this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	var dirs []string
	for _, m := range ws.Modules {
		if _, err := os.Stat(ws.Path(m.Dir + "/" + mutants.FileName)); err == nil {
			dirs = append(dirs, ws.Path(m.Dir))
		}
	}
	return mutants.Run(ctx, dirs, pattern, os.Stdout)
}
