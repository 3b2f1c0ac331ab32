// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/solonode/sno/examples/hosts/olm-operator/apiserver"
	"github.com/solonode/sno/examples/hosts/olm-operator/operator"
)

func main() {
	flags := flag.NewFlagSet("olm-operator", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	options := operator.DefaultOptions()
	options.Identity, _ = os.Hostname() // --identity is required without it
	options.BindFlags(flags)
	klog.InitFlags(flags)
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		os.Exit(2)
	}
	config, err := configOf(*kubeconfig)
	if err == nil {
		options.Namespace = cmp.Or(options.Namespace, config.Namespace)
		err = options.Validate(flags.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := apiserver.New(config, operator.Agent)
	if err == nil {
		err = operator.Run(ctx, client, options)
	}
	if err != nil {
		klog.Background().Error(err, "OLM operator failed")
		stop()
		os.Exit(1)
	}
}

func configOf(kubeconfig string) (apiserver.Config, error) {
	if kubeconfig == "" {
		return apiserver.InCluster()
	}
	return apiserver.FromKubeconfig(kubeconfig)
}
