// SPDX-License-Identifier: Apache-2.0

// Command kubectl-sno is a plugin of kubectl and oc, run as "kubectl sno" and "oc sno".
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/solonode/sno/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
