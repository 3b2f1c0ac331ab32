// Command static-pod-operators stands in, for tests, for the operators of etcd, kube-apiserver, kube-controller-manager and kube-scheduler on an
// installed node. Controllers and installer pod are library-go's own, as those operators run them; what decides what is in a pod is left out. It takes
// the control plane over with the next revision of each static pod, and keeps that.
//
//	static-pod-operators run --kubeconfig FILE --image IMAGE
//	static-pod-operators installer ...
//
// The second is what it runs in pods on the node, from the image.
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
	klog.InitFlags(logs) // installer pods are told how much to log
	root.PersistentFlags().AddGoFlagSet(logs)
	var o options
	run := &cobra.Command{
		Use: "run", Short: "Take the control plane over, and go on until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	run.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of somebody who may do everything")
	run.Flags().StringVar(&o.image, "image", "", "image of this program that is on the node")
	root.AddCommand(run, installerpod.NewInstaller(ctx))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}
