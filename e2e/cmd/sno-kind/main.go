// Command sno-kind proves the modules on real kubelets: it makes a cluster in containers, runs the controllers on it as pods, checks it, and removes it.
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
	"github.com/solonode/sno/e2e/sample"
	"github.com/solonode/sno/testcluster/kind"
)

const defaultScenario = "none-sno-day2-workers"

// options are the flags.
type options struct {
	kind            kind.Config
	scenario, tiers string
	experiments     string
	some            int
	start           uint64
	out, write      string
	keep, one       bool
	bare, remove    bool
	noSuite, list   bool
	told            *told
	// turn has room for one who loads the machine.
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
	o := options{kind: kind.Config{Progress: out}, told: newTold(out), turn: make(chan struct{}, 1)}
	flags := flag.NewFlagSet("sno-kind", flag.ContinueOnError)
	flags.SetOutput(out)
	start, err := sample.Start()
	if err != nil {
		return o, err
	}
	flags.StringVar(&o.kind.Name, "name", kind.DefaultName, "name of the cluster, which begins the names of its containers")
	flags.StringVar(&o.scenario, "scenario", defaultScenario, "what to put on it: a scenario with one or three control-plane nodes and no arbiter")
	flags.StringVar(&o.tiers, "tiers", "static,scheduled", "tiers of the conformance suite")
	flags.BoolVar(&o.noSuite, "no-suite", false, "leave the conformance suite out")
	flags.StringVar(&o.experiments, "experiments", "all", "what else to show: names with commas between them, all, or none")
	flags.IntVar(&o.some, "some", 0, "only so many of the experiments, beginning at -start; 0 for all")
	flags.Uint64Var(&o.start, "start", start, "where a sample begins; successive numbers come round to all; default: $"+sample.Variable+", or 0")
	flags.BoolVar(&o.list, "list", false, "list the experiments")
	flags.StringVar(&o.out, "out", "", "folder for the report and the figures; empty for nowhere")
	flags.StringVar(&o.write, "write", "", "document with a table of real kubelets into which the figures go, besides the folder")
	flags.BoolVar(&o.one, "one", false, "do everything on one cluster: what waits long is done beside the rest, on a second one, otherwise")
	flags.BoolVar(&o.keep, "keep", false, "leave the clusters when everything is done; what runs beside them ends")
	flags.BoolVar(&o.remove, "delete", false, "only remove the cluster of that name")
	flags.BoolVar(&o.bare, "bare", false, "only make a cluster, with nothing on it, and leave it")
	flags.IntVar(&o.kind.ControlPlanes, "control-planes", 1, "control-plane nodes of a bare cluster, 1 or 3")
	flags.IntVar(&o.kind.Workers, "workers", 2, "workers of a bare cluster")
	flags.BoolVar(&o.kind.ServerTLSBootstrap, "server-tls-bootstrap", false, "have kubelets ask for their serving certificates")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // it has been said
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("sno-kind takes flags only, not %q", flags.Args()) //nolint:err113 // for the reader
	}
	return o, nil
}

func do(ctx context.Context, o options) error {
	switch {
	case o.list:
		for _, e := range experiments.All() {
			fmt.Printf("%-24s %s\n", e.Name, e.Description)
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

// names are those of the flag.
func (o options) names() []string {
	if o.experiments == "none" || o.experiments == "" {
		return nil
	}
	return strings.Split(o.experiments, ",")
}
