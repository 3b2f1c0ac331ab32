// SPDX-License-Identifier: Apache-2.0

// Command sno-run demonstrates on an embedded cluster how the ingress controller pins the router. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/scenario"
)

func main() { os.Exit(run()) }

func run() int {
	options := demo.Options{Out: os.Stdout}
	flag.StringVar(&options.Scenario, "scenario", "none-sno-day2-workers", "Scenario; -list prints all.")
	flag.BoolVar(&options.Once, "once", false, "Stop after the proof. The exit code is 0 only if it held.")
	flag.BoolVar(&options.Keep, "keep", false, "Keep the cluster's folder with the logs of every component.")
	shell := flag.Bool("shell", false, "Start the same cluster without the modules' controllers, and run a shell on it with kubectl, oc, "+
		"kubectl-sno and sno-tests in its PATH. The cluster is removed when the shell exits.")
	built := flag.Bool("built", false, "Take the programs that an earlier run has built for up to date.")
	list := flag.Bool("list", false, "Print the scenarios and exit.")
	var operators framework.OperatorFlags
	operators.Bind(flag.CommandLine)
	flag.Parse()
	if *list {
		for _, s := range scenario.All() {
			fmt.Printf("%-26s %s\n", s.Name, s.Description)
		}
		return 0
	}
	var err error
	if options.Operators, err = operators.Read(); err != nil {
		fmt.Fprintln(os.Stderr, "sno-run:", err)
		return 2
	}
	ctrl.SetLogger(logr.Discard())
	// The API server warns about the node role of OpenShift.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *built {
		programs.SkipUpToDateChecks()
	}
	if *shell {
		return runShell(ctx, options)
	}
	switch err := demo.Run(ctx, options); {
	case err == nil:
		return 0
	case errors.Is(err, demo.ErrVerificationFailed):
		return 1
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "Interrupted")
		return 130
	default:
		fmt.Fprintln(os.Stderr, "sno-run:", err)
		return 2
	}
}

// runShell returns the exit code of the shell. Without a terminal the shell reads commands from standard input.
func runShell(ctx context.Context, options demo.Options) int {
	options.Out = os.Stderr
	err := demo.Shell(ctx, options, demo.Bash{
		Interactive: term.IsTerminal(int(os.Stdin.Fd())), In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	})
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "Interrupted")
		return 130
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "sno-run:", err)
		return 2
	}
}
