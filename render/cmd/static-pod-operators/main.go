// SPDX-License-Identifier: Apache-2.0

// Command static-pod-operators stands in, in tests, for the operators of etcd, kube-apiserver, kube-controller-manager
// and kube-scheduler on an installed node. Controllers and installer pod are library-go's, without the controllers that
// write the pods. It makes one new revision of each static pod and keeps it in place.
//
//	static-pod-operators run --kubeconfig FILE --image IMAGE
//	static-pod-operators installer ...
//
// The second command runs in installer pods.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/library-go/pkg/operator/staticpod/installerpod"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: name, SilenceUsage: true, SilenceErrors: true}
	logs := flag.NewFlagSet(name, flag.ContinueOnError)
	klog.InitFlags(logs) // for installer pods
	root.PersistentFlags().AddGoFlagSet(logs)
	var o options
	run := &cobra.Command{
		Use: "run", Short: "Take over the control plane and run until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	run.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of a cluster administrator")
	run.Flags().StringVar(&o.image, "image", "", "image of this program on the node")
	root.AddCommand(run, installerpod.NewInstaller(ctx))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}
