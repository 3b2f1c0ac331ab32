// SPDX-License-Identifier: Apache-2.0

// Command stand-in-operators is every stand-in operator: the one whose name the program is called by. One program is
// linked faster than six.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	authentication "github.com/solonode/sno/examples/hosts/authentication-operator/operator"
	console "github.com/solonode/sno/examples/hosts/console-operator/operator"
	etcd "github.com/solonode/sno/examples/hosts/etcd-operator/operator"
	ingress "github.com/solonode/sno/examples/hosts/ingress-operator/operator"
	approver "github.com/solonode/sno/examples/hosts/machine-approver/operator"
	machineconfig "github.com/solonode/sno/examples/hosts/machine-config-operator/operator"
)

// options are those of one operator.
type options interface {
	BindFlags(flags *flag.FlagSet)
	Validate(arguments []string) error
}

// consoleOptions have no arguments to validate.
type consoleOptions struct{ console.Options }

func (consoleOptions) Validate(arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q", arguments[0])
	}
	return nil
}

type runFunc func(context.Context, *rest.Config) error

// operators return the options of an operator, with their defaults, and what runs it with them.
var operators = map[string]func() (options, runFunc){
	"authentication-operator": func() (options, runFunc) {
		o := authentication.DefaultOptions()
		return &o, func(ctx context.Context, config *rest.Config) error { return authentication.Run(ctx, config, o) }
	},
	"console-operator": func() (options, runFunc) {
		o := consoleOptions{console.DefaultOptions()}
		return &o, func(ctx context.Context, config *rest.Config) error { return console.Run(ctx, config, o.Options) }
	},
	"etcd-operator": func() (options, runFunc) {
		o := etcd.DefaultOptions()
		return &o, func(ctx context.Context, config *rest.Config) error { return etcd.Run(ctx, config, o) }
	},
	"ingress-operator": func() (options, runFunc) {
		o := ingress.DefaultOptions()
		return &o, func(ctx context.Context, config *rest.Config) error { return ingress.Run(ctx, config, o) }
	},
	"machine-approver": func() (options, runFunc) {
		o := approver.DefaultOptions()
		return &o, func(ctx context.Context, config *rest.Config) error { return approver.Run(ctx, config, o) }
	},
	"machine-config-operator": func() (options, runFunc) {
		o := machineconfig.DefaultOptions()
		return &o, func(ctx context.Context, config *rest.Config) error { return machineconfig.Run(ctx, config, o) }
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	operator, ok := operators[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s is no stand-in operator; call the program by one of these names: %s\n", name,
			strings.Join(slices.Sorted(maps.Keys(operators)), ", "))
		os.Exit(2)
	}
	options, run := operator()
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	options.BindFlags(flags)
	klog.InitFlags(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2)
	}
	if err := options.Validate(flags.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config)
	}
	if err != nil {
		klog.Background().Error(err, "Operator failed", "operator", name)
		os.Exit(1)
	}
}
