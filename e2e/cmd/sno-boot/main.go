// Command sno-boot shows that machines come up from the configs of sno-install: by bootstrap in place, and all in one. The machines are containers with a disk
// of their own; Ignition, systemd, containerd and the kubelet are real.
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

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/installing"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// options are the flags.
type options struct {
	name, out, from      string
	ways                 []installing.Way
	keep, remove, whyNot bool
	progress             io.Writer
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
	flags.StringVar(&o.out, "out", "", "folder for the configs, and for logs of what went wrong; empty for a temporary one")
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	way := flags.String("way", "", "only one of "+strings.Join(names, ", "))
	flags.StringVar(&o.from, "from", "", "with -way and the -out of before: go on at this step, with the machine that -keep has left")
	flags.BoolVar(&o.keep, "keep", false, "leave the machine of the last way, and say how to use it")
	flags.BoolVar(&o.remove, "delete", false, "only remove the machine of that name")
	flags.BoolVar(&o.whyNot, "why-not", false, "only print why no machine can be made here; nothing where one can")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // it has been said
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("sno-boot takes flags only, not %q", flags.Args()) //nolint:err113 // for the reader
	}
	o.ways = all
	if *way != "" {
		i := slices.IndexFunc(all, func(w installing.Way) bool { return w.Name == *way })
		if i < 0 {
			return o, fmt.Errorf("%w: -way is one of %s, not %q", errFlag, strings.Join(names, ", "), *way)
		}
		o.ways = all[i : i+1]
	}
	if o.from != "" && (len(o.ways) > 1 || o.out == "") {
		return o, fmt.Errorf("%w: -from needs -way, and the -out of before", errFlag)
	}
	return o, nil
}

// all are the ways, in the order in which they are shown.
var all = []installing.Way{installing.InPlace, installing.AllInOne}

var errFlag = errors.New("this cannot be done")

func do(ctx context.Context, o options) error {
	switch {
	case o.whyNot:
		return commandline.WhyNot(ctx, os.Stdout) //nolint:wrapcheck // says it all
	case o.remove:
		live := nodemachine.Config{Name: o.name + "-live", Network: o.name, Progress: o.progress}
		return errors.Join(nodemachine.Delete(ctx, live), nodemachine.Delete(ctx, nodemachine.Config{Name: o.name, Progress: o.progress}))
	}
	return boot(ctx, o)
}

// boot installs a machine in each way.
func boot(ctx context.Context, o options) (err error) {
	began := time.Now()
	e, err := engine.Find(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says it all
	}
	image, version, err := nodeimage.Ensure(ctx, e, o.progress)
	if err != nil {
		return err //nolint:wrapcheck // says it all
	}
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "sno-boot-"); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.out)) }()
	}
	for i, way := range o.ways {
		fmt.Fprintf(o.progress, "== %s (%s)\n", way.Title, time.Since(began).Round(time.Second))
		m := &installing.Machine{
			Config: nodemachine.Config{Name: o.name, Image: image, Progress: o.progress}, Folder: filepath.Join(o.out, way.Name), Version: version,
		}
		took, err := m.Up(ctx, way, o.from)
		for _, t := range took {
			fmt.Fprintf(o.progress, "%8.1fs  %s\n", t.Time.Seconds(), t.Step)
		}
		if o.keep && i == len(o.ways)-1 {
			fmt.Fprintf(o.progress, "The machine stays: docker exec %s crictl ps; remove it with -name %s -delete\n", o.name, o.name)
			return err //nolint:wrapcheck // it names the step
		}
		if err := errors.Join(err, m.Remove()); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.progress, "== Done (%s)\n", time.Since(began).Round(time.Second))
	return nil
}
