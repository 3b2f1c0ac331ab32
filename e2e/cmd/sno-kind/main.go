// SPDX-License-Identifier: Apache-2.0

// Command sno-kind tests the modules on real kubelets: it creates a cluster in containers with the controllers as pods,
// checks it, and removes it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/experiments"
	"github.com/solonode/sno/testcluster/kind"
)

const defaultScenario = "none-sno-day2-workers"

// options are the flags.
type options struct {
	kind            kind.Config
	scenario, tiers string
	experiments     string
	out, write      string
	keep, one       bool
	bare, remove    bool
	noSuite, list   bool
	progress        *progress
	// turn is the semaphore of exclusive work.
	turn chan struct{}
}

func main() { os.Exit(start()) }

func start() int {
	return commandline.Main("sno-kind", func(ctx context.Context, arguments []string, errs io.Writer) error {
		o, err := parse(arguments, errs)
		if err != nil {
			return err
		}
		return do(ctx, o)
	})
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{kind: kind.Config{Progress: out}, progress: newProgress(out), turn: make(chan struct{}, 1)}
	flags := flag.NewFlagSet("sno-kind", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.kind.Name, "name", kind.DefaultName, "name of the cluster and prefix of its containers")
	flags.StringVar(&o.scenario, "scenario", defaultScenario, "scenario with one or three control-plane nodes and no arbiter")
	flags.StringVar(&o.tiers, "tiers", "static,scheduled", "tiers of the conformance suite")
	flags.BoolVar(&o.noSuite, "no-suite", false, "leave the conformance suite out")
	flags.StringVar(&o.experiments, "experiments", "all", "experiments to run: names with commas between them, all, or none")
	flags.BoolVar(&o.list, "list", false, "list the experiments")
	flags.StringVar(&o.out, "out", "", "folder for the report and the figures; empty for none")
	flags.StringVar(&o.write, "write", "", "document whose table of real kubelets receives the figures too")
	flags.BoolVar(&o.one, "one", false, "use one cluster; by default long waits run on a second one in parallel")
	flags.BoolVar(&o.keep, "keep", false, "keep the clusters at the end; processes outside of them stop")
	flags.BoolVar(&o.remove, "delete", false, "only remove the cluster of that name")
	flags.BoolVar(&o.bare, "bare", false, "only create an empty cluster and keep it")
	flags.IntVar(&o.kind.ControlPlanes, "control-planes", 1, "control-plane nodes of a bare cluster, 1 or 3")
	flags.IntVar(&o.kind.Workers, "workers", 2, "workers of a bare cluster")
	flags.BoolVar(&o.kind.ServerTLSBootstrap, "server-tls-bootstrap", false, "make kubelets request their serving certificates")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // reported already
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("sno-kind takes flags only, not %q", flags.Args()) //nolint:err113 // printed only
	}
	return o, nil
}

func do(ctx context.Context, o options) error {
	switch {
	case o.list:
		for _, e := range experiments.All() {
			only := ""
			if e.OptIn {
				only = " (not in all)"
			}
			fmt.Printf("%-24s %s%s\n", e.Name, e.Description, only)
		}
		return nil
	case o.remove:
		return kind.Delete(ctx, o.kind.Name, o.kind.Progress)
	case o.bare:
		c, err := kind.Create(ctx, o.kind)
		if err == nil {
			fmt.Println(c.Kubeconfig())
		}
		return err
	}
	return prove(ctx, o)
}

// names returns the values of -experiments.
func (o options) names() []string {
	if o.experiments == "none" || o.experiments == "" {
		return nil
	}
	return strings.Split(o.experiments, ",")
}
