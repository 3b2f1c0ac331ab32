// SPDX-License-Identifier: Apache-2.0

// Command sno-node compares the static pods of sno-render with kubeadm's on a real kubelet: in turn it creates a
// machine in a container, starts a control plane on it, verifies it, and removes the machine.
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
	name             string
	rounds           int
	out, write       string
	keep             bool
	remove           bool
	printUnsupported bool
	progress         io.Writer
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
	flags.IntVar(&o.rounds, "rounds", 3, "maximum number of rounds: one is enough if its bounds are met; a missed bound is printed and is not an error")
	flags.StringVar(&o.out, "out", "", "folder for the figures, and for logs of failures; empty for none")
	flags.StringVar(&o.write, "write", "", "document with a table of real kubelets that receives the figures")
	flags.BoolVar(&o.keep, "keep", false, "keep the machine with the rendered control plane, and print how to use it")
	flags.BoolVar(&o.remove, "delete", false, "only remove the machine of that name")
	flags.BoolVar(&o.printUnsupported, "print-unsupported", false, "only print why machines cannot be created here, or nothing if they can")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // reported already
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("sno-node takes flags only, not %q", flags.Args()) //nolint:err113 // printed only
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds must be 1 or more, not %d", o.rounds) //nolint:err113 // printed only
	}
	return o, nil
}

func do(ctx context.Context, o options) error {
	switch {
	case o.printUnsupported:
		return commandline.PrintUnsupported(ctx, os.Stdout) //nolint:wrapcheck // complete
	case o.remove:
		return nodemachine.Delete(ctx, o.machine())
	}
	return prove(ctx, o)
}

func (o options) machine() nodemachine.Config {
	return nodemachine.Config{Name: o.name, Progress: o.progress}
}
