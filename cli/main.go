// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Main runs the program and returns its exit code.
func Main(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := New(streams)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	code := exit(0)
	if err == nil || errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(streams.ErrOut, "error: "+explain(err))
	if command.Name() == "diff" {
		return int(exitDiffError)
	}
	return int(exitError)
}
