// Command kubeconfig prints what is wrong with the kubeconfig that is its argument, in one line, and nothing when nothing is.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/solonode/sno/hack/kubeconfig"
)

func main() {
	if problem := kubeconfig.Problem(context.Background(), strings.Join(os.Args[1:], " ")); problem != "" {
		fmt.Println(problem)
	}
}
