package manager

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Main is a controller's whole main function: it reads the flags, runs until SIGINT or SIGTERM (a second one ends it at once)
// and returns the exit code: 0 after a clean shutdown, 1 after a failure, 2 for flags that do not make sense.
func Main(name string, args []string, modules ...Module) int {
	options := Options{}
	code, err := parse(name, args, os.Stderr, &options, modules)
	if err != nil || code != 0 || options.Logging == nil {
		return code
	}
	logger := textlogger.NewLogger(options.Logging)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	ctx := logr.NewContext(ctrl.SetupSignalHandler(), logger)
	if err := load(ctx, name, options, modules); err != nil {
		logger.Error(err, "Controller failed")
		return 1
	}
	logger.Info("Controller stopped")
	return 0
}

// parse reads the flags. Help is asked for with -h or --help; then options.Logging stays nil and the code is 0.
func parse(name string, args []string, out io.Writer, options *Options, modules []Module) (int, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	parsed := *options
	parsed.BindFlags(flags)
	for _, m := range modules {
		m.BindFlags(flags)
	}
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp: //nolint:errorlint // the flag package returns it unwrapped
		return 0, nil
	case err != nil:
		return 2, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("%w: unexpected argument %q", ErrOptions, flags.Arg(0))
		fmt.Fprintln(out, err)
		return 2, err
	}
	check := []func() error{parsed.Validate}
	for _, m := range modules {
		check = append(check, m.Validate)
	}
	for _, valid := range check {
		if err := valid(); err != nil {
			fmt.Fprintln(out, err)
			return 2, err
		}
	}
	*options = parsed
	return 0, nil
}

func load(ctx context.Context, name string, options Options, modules []Module) error {
	var restConfig *rest.Config
	var err error
	if options.Kubeconfig != "" {
		restConfig, err = clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	} else {
		restConfig, err = config.GetConfig()
	}
	if err != nil {
		return fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	return Run(ctx, restConfig, name, options, modules...)
}
