// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/examples/hosts/machine-approver/operator"
)

func main() {
	flags := flag.NewFlagSet("machine-approver", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	options := operator.DefaultOptions()
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
		err = operator.Run(ctrl.SetupSignalHandler(), config, options)
	}
	if err != nil {
		klog.Background().Error(err, "Machine approver failed")
		os.Exit(1)
	}
}
