// SPDX-License-Identifier: Apache-2.0

// Command sno-soak runs the controllers through faults on embedded clusters and checks invariants from its audit log.
// See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/soak"
)

func main() { os.Exit(commandline.Main("sno-soak", run)) }

func run(ctx context.Context, arguments []string, errs io.Writer) error {
	options := soak.Options{Progress: errs}
	flags := flag.NewFlagSet("sno-soak", flag.ContinueOnError)
	flags.IntVar(&options.Kills, "kills", 20, "Number of kills.")
	flags.DurationVar(&options.BadTime, "bad", 0, "How long the API server is bad; 0 for 20s if there are less than 500 kills, otherwise 10m.")
	flags.IntVar(&options.Leaders, "leaders", 0, "Number of times with two leaders; 0 for one in twenty kills.")
	flags.Uint64Var(&options.Seed, "seed", 1, "Selects the random moments; the same number repeats them.")
	only := flags.String("only", "", "Only these runs, comma-separated: "+strings.Join(soak.Names(), ", ")+".")
	flags.BoolVar(&options.Keep, "keep", false, "Keep the folders of the clusters.")
	document := flags.String("write", "", "Markdown document whose table to update, between its markers.")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *only != "" {
		options.Only = strings.Split(*only, ",")
	}
	const long, one = 500, 20
	if options.BadTime == 0 {
		if options.BadTime = 20 * time.Second; options.Kills >= long {
			options.BadTime = 10 * time.Minute
		}
	}
	if options.Leaders == 0 {
		options.Leaders = max(options.Kills/one, 1)
	}
	repeat := fmt.Sprintf("go run -C e2e ./cmd/sno-soak -seed=%d %s", options.Seed, strings.Join(arguments, " "))
	fmt.Fprintln(errs, "This repeats the moments:", repeat)
	began := time.Now()
	rows, err := soak.Run(ctx, options)
	if printErr := bench.Print(os.Stdout, rows); printErr != nil {
		err = errors.Join(err, printErr)
	}
	if err != nil {
		return fmt.Errorf("%w\nThis repeats the moments: %s", err, repeat)
	}
	fmt.Fprintf(errs, "every invariant held for %s\n", time.Since(began).Round(time.Second))
	if *document == "" {
		return nil
	}
	before, err := os.ReadFile(*document)
	if err != nil {
		return err
	}
	after, err := bench.Faults.Document(before, rows, bench.Machine(), len(options.Only) > 0)
	if err != nil {
		return err
	}
	return os.WriteFile(*document, after, 0o644)
}
