// SPDX-License-Identifier: Apache-2.0

// Command kubelet-config reads a kubelet's configuration as the kubelet does, from the file that it is given: with the
// kubelet's own loader and its defaults, and then with its validation. It prints the two grace periods for shutdowns,
// in seconds.
//
// It is built against module testcluster/kube, the only one that has all of Kubernetes.
package main

import (
	"context"
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("want the path of a file, got %q", os.Args[1:]))
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, os.Args[1])
	fail(err)
	config, err := loader.Load(context.Background())
	fail(err)
	gates := utilfeature.DefaultFeatureGate.DeepCopy()
	fail(gates.SetFromMap(config.FeatureGates))
	fail(validation.ValidateKubeletConfiguration(config, gates))
	fmt.Println(config.ShutdownGracePeriod.Seconds(), config.ShutdownGracePeriodCriticalPods.Seconds())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-config:", err)
		os.Exit(1)
	}
}
