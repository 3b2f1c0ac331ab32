// SPDX-License-Identifier: Apache-2.0

// Command conformance lists the checks of a module.
package main

import (
	"fmt"
	"log"

	"github.com/solonode/sno/conformance/checks"
)

func main() {
	selected, err := checks.Select(checks.Catalogue(), checks.Selection{Modules: []string{"ingress"}, Tiers: []checks.Tier{checks.Static}})
	if err != nil {
		log.Fatal(err)
	}
	for _, check := range selected {
		fmt.Println(check.ID, check.Title)
	}
}
