// SPDX-License-Identifier: Apache-2.0

// Command kubeconfig prints a fault of the kubeconfig that is its argument in one line, and nothing if there is none.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/solonode/sno/hack/kubeconfig"
)

func main() {
	flag.Parse()
	if problem := kubeconfig.Diagnose(context.Background(), flag.Arg(0)); problem != "" {
		fmt.Println(problem)
	}
}
