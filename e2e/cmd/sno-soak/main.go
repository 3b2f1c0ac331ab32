// SPDX-License-Identifier: Apache-2.0

// Command sno-soak runs the controllers through faults on an embedded cluster and checks invariants from its audit log.
// See -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/soak"
)

func main() { os.Exit(commandline.Main("sno-soak", run)) }

func run(ctx context.Context, arguments []string, errs io.Writer) error {
	options := soak.Options{Progress: errs}
	flags := flag.NewFlagSet("sno-soak", flag.ContinueOnError)
	flags.IntVar(&options.Kills, "kills", 20, "Number of kills.")
	flags.DurationVar(&options.BadTime, "bad", 20*time.Second, "How long the API server is bad.")
	flags.IntVar(&options.Leaders, "leaders", 3, "Number of times with two leaders.")
	flags.Uint64Var(&options.Start, "start", 0, "Selects the random moments; the same number repeats them.")
	only := flags.String("only", "", "Only these runs, comma-separated: "+strings.Join(soak.Names(), ", ")+".")
	flags.BoolVar(&options.Keep, "keep", false, "Keep the folder of the cluster.")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *only != "" {
		options.Only = strings.Split(*only, ",")
	}
	rows, err := soak.Run(ctx, options)
	for _, row := range rows {
		fmt.Printf("%-60s %s\n", row.What, row.Measured)
	}
	return err
}
