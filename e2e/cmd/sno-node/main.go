// Command sno-node shows that the static pods of sno-render run on a real kubelet, beside kubeadm's: it makes a machine in a container, brings up a control plane
// on it, looks at what must be true, and removes the machine; kubeadm's and ours in turn, in the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// options are the flags.
type options struct {
	name       string
	rounds     int
	out, write string
	keep       bool
	remove     bool
	whyNot     bool
	progress   io.Writer
}

func main() { os.Exit(start()) }

func start() int {
	return commandline.Main("sno-node", func(ctx context.Context, arguments []string, errs io.Writer) error {
		o, err := parse(arguments, errs)
		if err != nil {
			return err
		}
		return do(ctx, o)
	})
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{progress: out}
	flags := flag.NewFlagSet("sno-node", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.name, "name", "sno-node", "name of the machine, which is also that of its container, its disk and its network")
	flags.IntVar(&o.rounds, "rounds", 3, "how often at most both control planes are brought up: one round is enough when its bounds are held; a bound that is missed is printed and is no error")
	flags.StringVar(&o.out, "out", "", "folder for the figures, and for logs of what went wrong; empty for nowhere")
	flags.StringVar(&o.write, "write", "", "document with a table of real kubelets into which the figures go")
	flags.BoolVar(&o.keep, "keep", false, "leave the machine with the rendered control plane when everything is done, and say how to use it")
	flags.BoolVar(&o.remove, "delete", false, "only remove the machine of that name")
	flags.BoolVar(&o.whyNot, "why-not", false, "only print why no machine can be made here; nothing where one can")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // reported already
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("sno-node takes flags only, not %q", flags.Args()) //nolint:err113 // for the reader
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds must be 1 or more, not %d", o.rounds) //nolint:err113 // for the reader
	}
	return o, nil
}

func do(ctx context.Context, o options) error {
	switch {
	case o.whyNot:
		return commandline.PrintUnsupported(ctx, os.Stdout) //nolint:wrapcheck // complete
	case o.remove:
		return nodemachine.Delete(ctx, o.machine())
	}
	return prove(ctx, o)
}

func (o options) machine() nodemachine.Config {
	return nodemachine.Config{Name: o.name, Progress: o.progress}
}
