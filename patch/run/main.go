// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/patch/controller"
)

// Main runs a controller until SIGINT or SIGTERM, or until it has to start again. It returns the exit code: 0, 1 after
// a failure, 2 for invalid flags.
func Main(name string, args []string, modules ...controller.Module) int {
	options, err := parse(name, args, os.Stderr, modules)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	logger := textlogger.NewLogger(options.Logging)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	err = runWith(logr.NewContext(ctrl.SetupSignalHandler(), logger), name, options, modules)
	switch {
	case errors.Is(err, ErrRestart):
		logger.Info("Controller ends, to be started again by its Pod", "cause", err.Error())
	case err != nil:
		logger.Error(err, "Controller failed")
		return 1
	default:
		logger.Info("Controller stopped")
	}
	return 0
}

// parse parses the flags and writes errors to out.
func parse(name string, args []string, out io.Writer, modules []controller.Module) (Options, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	options := Options{}
	options.BindFlags(flags)
	for _, m := range modules {
		m.BindFlags(flags)
	}
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	errs := []error{options.Validate()}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%w: unexpected argument %q", controller.ErrOptions, flags.Arg(0)))
	}
	for _, m := range modules {
		errs = append(errs, m.Validate())
	}
	err := errors.Join(errs...)
	if err != nil {
		fmt.Fprintln(out, err)
	}
	return options, err
}

func runWith(ctx context.Context, name string, options Options, modules []controller.Module) error {
	find := ctrl.GetConfig
	if options.Kubeconfig != "" {
		find = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", options.Kubeconfig) }
	}
	restConfig, err := find()
	if err != nil {
		return fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	return Run(ctx, restConfig, name, options, modules...)
}
