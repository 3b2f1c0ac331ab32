// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/examples/hosts/ingress-operator-library-go/operator"
)

func main() {
	flags := flag.NewFlagSet("ingress-operator-library-go", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	var options operator.Options
	options.BindFlags(flags)
	klog.InitFlags(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2)
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flags.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = operator.Run(ctx, config, options)
	}
	if err != nil {
		klog.Background().Error(err, "Ingress operator failed")
		os.Exit(1)
	}
}
