// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"strings"

	"github.com/solonode/sno/fleet/manifests"
)

func ExampleRender() {
	text, err := manifests.Render("registry.example.com/{module}-controller:v1", true, "auth", "ingress")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, " image: ") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// image: registry.example.com/auth-controller:v1
	// image: registry.example.com/ingress-controller:v1
}
