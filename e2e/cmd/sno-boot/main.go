// SPDX-License-Identifier: Apache-2.0

// Command sno-boot boots machines from the configs of sno-install: by bootstrap in place, and all in one. The machines
// are containers with their own disks; Ignition, systemd, containerd and the kubelet are real.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/installing"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
	"github.com/solonode/sno/testcluster/nodemachine"
)

type options struct {
	name, out                      string
	from, until, write             string
	ways                           []installing.Method
	keep, remove, printUnsupported bool
	journal, wait                  bool
	cuts                           installing.PowerCuts
	progress                       io.Writer
}

func main() { os.Exit(start()) }

func start() int {
	return commandline.Main("sno-boot", func(ctx context.Context, arguments []string, errs io.Writer) error {
		o, err := parse(arguments, errs)
		if err != nil {
			return err
		}
		return do(ctx, o)
	})
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{progress: out}
	flags := flag.NewFlagSet("sno-boot", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.name, "name", "sno-boot", "name of the machine, which is also that of its container, its disk and its network")
	flags.StringVar(&o.out, "out", "", "folder for the configs, and for logs of failures; empty for a temporary one")
	all := installing.Methods()
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	way := flags.String("way", "", "only one of "+strings.Join(names, ", ")+"; by default all but those with cuts, and the one that waits for certificates to expire")
	flags.StringVar(&o.from, "from", "", "with -way and the same -out: continue at this step, with the machine of -keep")
	flags.StringVar(&o.until, "until", "", "with -way: end after this step")
	flags.BoolVar(&o.journal, "journal", false, "print the journal of the machine")
	flags.BoolVar(&o.wait, "wait", false, "with -way: write a kubeconfig to the folder, keep the machine running until Ctrl-C, and then remove both")
	flags.StringVar(&o.write, "write", "", "document with a table of installations that receives the figures")
	flags.BoolVar(&o.keep, "keep", false, "keep the machine of the last way, and print how to use it")
	flags.BoolVar(&o.remove, "delete", false, "only remove the machine of that name")
	flags.IntVar(&o.cuts.PerPhase, "cuts", 0, "cut the power at this many random points in each phase, in the ways with power cuts")
	flags.Uint64Var(&o.cuts.Seed, "seed", 1, "with -cuts: start value of the random numbers; the same number repeats the points")
	flags.BoolVar(&o.printUnsupported, "print-unsupported", false, "only print why machines cannot be created here, or nothing if they can")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // reported already
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("sno-boot takes flags only, not %q", flags.Args()) //nolint:err113 // printed only
	}
	o.ways = slices.DeleteFunc(slices.Clone(all), func(w installing.Method) bool { return w.Long || w.PowerCuts != (o.cuts.PerPhase > 0) })
	if *way != "" {
		i := slices.IndexFunc(all, func(w installing.Method) bool { return w.Name == *way })
		if i < 0 {
			return o, fmt.Errorf("%w: -way is one of %s, not %q", errFlag, strings.Join(names, ", "), *way)
		}
		o.ways = all[i : i+1]
	}
	switch one := len(o.ways) == 1; {
	case o.from != "" && (!one || o.out == ""):
		return o, fmt.Errorf("%w: -from needs -way, and the same -out", errFlag)
	case (o.until != "" || o.wait) && !one:
		return o, fmt.Errorf("%w: -until and -wait need -way", errFlag)
	case o.cuts.PerPhase < 0 || o.ways[0].PowerCuts != (o.cuts.PerPhase > 0):
		return o, fmt.Errorf("%w: -cuts is a number of power cuts, for %s and %s", errFlag, installing.InPlacePowerCuts.Name, installing.AllInOnePowerCuts.Name)
	case o.wait && o.keep:
		return o, fmt.Errorf("%w: -wait removes the machine at the end, and -keep keeps it", errFlag)
	}
	return o, nil
}

var errFlag = errors.New("invalid flags")

func do(ctx context.Context, o options) error {
	switch {
	case o.printUnsupported:
		return commandline.PrintUnsupported(ctx, os.Stdout) //nolint:wrapcheck // complete
	case o.remove:
		return installing.Delete(ctx, nodemachine.Config{Name: o.name, Progress: o.progress}) //nolint:wrapcheck // it names them
	}
	return boot(ctx, o)
}

func boot(ctx context.Context, o options) (err error) {
	began := time.Now()
	e, err := engine.Find(ctx)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	image, version, err := nodeimage.Ensure(ctx, e, o.progress)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "sno-boot-"); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.out)) }()
	}
	reports := installing.Reports{}
	for i, way := range o.ways {
		fmt.Fprintf(o.progress, "== %s (%s)\n", way.Title, time.Since(began).Round(time.Second))
		m := &installing.Machine{
			Config: nodemachine.Config{Name: o.name, Image: image, Progress: o.progress}, Folder: filepath.Join(o.out, way.Name), Version: version, PowerCuts: o.cuts,
		}
		if o.journal {
			m.Journal = o.progress
		}
		report, err := m.Run(ctx, way, o.from, o.until)
		reports[way.Name] = report
		if o.wait && err == nil {
			err = o.waitForInterrupt(ctx, m)
		}
		if o.keep && i == len(o.ways)-1 {
			fmt.Fprintf(o.progress, "The machine is kept: docker exec %s crictl ps; remove it with -name %s -delete\n", o.name, o.name)
			return err //nolint:wrapcheck // it names the step
		}
		if err := errors.Join(err, m.Remove()); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.progress, "== Done (%s)\n", time.Since(began).Round(time.Second))
	return o.record(reports)
}

// waitForInterrupt keeps the machine for interactive use until the context ends.
func (o options) waitForInterrupt(ctx context.Context, m *installing.Machine) error {
	kubeconfig := filepath.Join(o.out, "kubeconfig")
	if err := m.WriteKubeconfig(kubeconfig); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	fmt.Fprintf(o.progress, "\nThe node runs until Ctrl-C. Use it in another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get pods --all-namespaces\n"+
		"  docker exec %s journalctl --follow\n\n", kubeconfig, o.name)
	<-ctx.Done()
	return nil
}

// record prints the figures, and writes them to the document.
func (o options) record(reports installing.Reports) error {
	rows := reports.Rows()
	if err := errors.Join(reports.Print(os.Stdout), bench.Print(os.Stdout, rows)); err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	if o.write == "" {
		return nil
	}
	before, err := os.ReadFile(o.write)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	after, err := bench.Installations.Document(before, rows, bench.Machine(), true)
	if err != nil {
		return fmt.Errorf("write the figures into %s: %w", o.write, err)
	}
	return os.WriteFile(o.write, after, 0o644) //nolint:gosec,wrapcheck // a document; complete
}
