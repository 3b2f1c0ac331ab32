// SPDX-License-Identifier: Apache-2.0

// Command proved runs a command unless it has passed before on the same bytes. See package proved and -help.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/solonode/sno/hack/proved"
	"github.com/solonode/sno/hack/workspace"
)

const grace = time.Minute

func main() {
	name := flag.String("step", "", "name of the step in output")
	from := flag.String("inputs", ".", "modules, files and folders that the command depends on, relative to the root, separated by commas")
	note := flag.String("note", "", "text for the record, such as the start of a sample")
	fresh := flag.Bool("fresh", false, "run the command even if it has passed before")
	dir := flag.String("dir", ".", "folder to run it in, relative to the root")
	bound := flag.Bool("bound", false, "only print the time limit of a whole run in seconds, the module that has changed or -, and the reason")
	passed := flag.Bool("passed", false, "only record that all steps have passed on these bytes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: proved -step NAME [-inputs NAME,NAME] [-note TEXT] [-fresh] [-dir FOLDER] COMMAND [ARGUMENT...]\n       proved -bound | -passed")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *bound || *passed {
		if err := all(ctx, *passed); err != nil {
			fmt.Fprintln(os.Stderr, "proved:", err)
			os.Exit(1)
		}
		return
	}
	if *name == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	step := proved.Step{Name: *name, Command: append([]string{*dir}, flag.Args()...), Inputs: strings.Split(*from, ",")}
	err := run(ctx, step, *dir, *note, *fresh)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode()) // the command has printed its error
	default:
		fmt.Fprintln(os.Stderr, "proved:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, step proved.Step, dir, note string, fresh bool) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	store, err := proved.OpenStore()
	if err != nil {
		return err
	}
	key, made, err := keyOf(ctx, ws, step)
	if err != nil {
		return err
	}
	if record, ok := store.Lookup(key); ok && !fresh {
		fmt.Printf("proved before: %s, on %s in %.0f s, on the same bytes of %s%s\n",
			step.Name, record.At.UTC().Format("2006-01-02 15:04"), record.Seconds, strings.Join(made, " "), noted(record.Note))
		return nil
	}
	start := time.Now()
	if err := execute(ctx, ws.Path(dir), step.Command[1:]); err != nil {
		return err
	}
	// A command that ran while the files changed does not count.
	if again, _, err := keyOf(ctx, ws, step); err != nil || again != key {
		return err
	}
	return store.Add(key, proved.Record{Step: step.Name, At: start, Seconds: time.Since(start).Seconds(), Note: note})
}

func all(ctx context.Context, passed bool) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	store, err := proved.OpenStore()
	if err != nil {
		return err
	}
	keyer, err := proved.NewKeyer(ctx, ws)
	if err != nil {
		return err
	}
	parts, err := keyer.Parts()
	if err != nil {
		return err
	}
	if passed {
		return store.SetLastPassed(parts)
	}
	bound, module, why := proved.Bound(store.LastPassed(), parts)
	fmt.Printf("%.0f %s %s\n", bound.Seconds(), cmp.Or(module, "-"), why)
	return nil
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return ", " + note
}

func keyOf(ctx context.Context, ws *workspace.Workspace, step proved.Step) (string, []string, error) {
	keyer, err := proved.NewKeyer(ctx, ws)
	if err != nil {
		return "", nil, err
	}
	return keyer.Key(step)
}

func execute(ctx context.Context, dir string, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	return cmd.Run()
}
