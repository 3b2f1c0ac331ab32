// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// exitStop is the exit code after an interruption.
const exitStop = 130

// Main runs a program and returns the exit code: 0, 1 after an error, 130 after an interruption, which ends the
// context.
func Main(name string, run func(ctx context.Context, arguments []string, errs io.Writer) error) int {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return exit(ctx, name, run(ctx, os.Args[1:], os.Stderr), os.Stderr)
}

func exit(ctx context.Context, name string, err error, errs io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(errs, "%s: interrupted\n", name)
		return exitStop
	default:
		fmt.Fprintf(errs, "%s: %v\n", name, err)
		return 1
	}
}
