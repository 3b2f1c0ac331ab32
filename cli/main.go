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
	command := New(streams)
	command.SetArgs(args)
	verb, err := command.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	code := exitError
	if verb.Name() == diffVerb {
		code = exitDiff // 1 means differences there, also to a script that got a flag wrong
	}
	if ended := (exit{}); errors.As(err, &ended) {
		code, err = ended.code, ended.err
	}
	if err != nil {
		fmt.Fprintln(streams.ErrOut, "error: "+explain(err))
	}
	return code
}
