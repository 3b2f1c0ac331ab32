// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"

	"github.com/solonode/sno/render/observe"
)

func ExampleFlags() {
	defaults := observe.Merge(observe.Argument("secure-port", "10257"), observe.Argument("controllers", "*", "-ttl"))
	observed := observe.Argument("cluster-name", "example-x7k2p")
	flags, err := observe.Flags(observe.Merge(defaults, observed), "extendedArguments")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, flag := range flags {
		fmt.Println(flag)
	}
	// Output:
	// --cluster-name=example-x7k2p
	// --controllers=*
	// --controllers=-ttl
	// --secure-port=10257
}
