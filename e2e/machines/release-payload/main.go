// SPDX-License-Identifier: Apache-2.0

// Command release-payload stands in for podman with the images of a release payload, and for the programs in these
// images that a bootstrap phase runs. It acts by the name that it is called by:
//
//	podman                            renders by recorded outputs, see podman
//	hyperkube                         Kubernetes' own programs, without what only OpenShift's know
//	cluster-kube-apiserver-operator   insecure-readyz
//	cluster-policy-controller         health only
//	machine-config-controller         the master config of the machine-config operator
//	machine-config-server             serves it
//	cluster-version-operator          the late definitions, and ClusterVersion's status
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

var programs = map[string]func(ctx context.Context, arguments []string) error{
	"podman":                          podman,
	"hyperkube":                       hyperkube,
	"cluster-kube-apiserver-operator": insecureReadyz,
	"cluster-policy-controller":       policyController,
	"machine-config-controller":       machineConfigController,
	"machine-config-server":           machineConfigServer,
	"cluster-version-operator":        clusterVersionOperator,
}

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		fmt.Fprintln(os.Stderr, "Error: no program", name)
		return 1
	}
	if err := program(ctx, os.Args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
