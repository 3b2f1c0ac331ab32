// SPDX-License-Identifier: Apache-2.0

// Command stand-in-operators runs one stand-in: stand-in-operators OPERATOR [flags], or OPERATOR [flags] by a link with
// an operator's name, which lists of processes then show.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/testcluster/standin/approver"
	"github.com/solonode/sno/testcluster/standin/auth"
	"github.com/solonode/sno/testcluster/standin/console"
	"github.com/solonode/sno/testcluster/standin/etcd"
	"github.com/solonode/sno/testcluster/standin/ingress"
	"github.com/solonode/sno/testcluster/standin/machineconfig"
)

// operators have the names of the stock operators' programs.
var operators = map[string]standin.Options{
	"authentication-operator": auth.DefaultOptions(),
	"console-operator":        console.DefaultOptions(),
	"etcd-operator":           etcd.DefaultOptions(),
	"ingress-operator":        ingress.DefaultOptions(),
	"machine-approver":        approver.DefaultOptions(),
	"machine-config-operator": machineconfig.DefaultOptions(),
}

func main() {
	name, arguments := filepath.Base(os.Args[0]), os.Args[1:]
	options, ok := operators[name]
	if !ok && len(arguments) > 0 {
		name, arguments = arguments[0], arguments[1:]
		options, ok = operators[name]
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "%q is no stand-in; the first argument is one of %s\n", name, strings.Join(slices.Sorted(maps.Keys(operators)), ", "))
		os.Exit(2)
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	options.BindFlags(flags)
	klog.InitFlags(flags)
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2)
	}
	operator, err := options.Operator()
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0)) //nolint:err113 // for a person
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctrl.SetLogger(klog.Background())
	if err := run(operator, *kubeconfig); err != nil {
		klog.Background().Error(err, "The stand-in failed", "operator", name)
		os.Exit(1)
	}
}

func run(operator standin.Operator, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return operator.Run(ctrl.SetupSignalHandler(), config)
}
