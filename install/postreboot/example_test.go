// SPDX-License-Identifier: Apache-2.0

package postreboot_test

import (
	"fmt"

	"github.com/solonode/sno/install/postreboot"
)

func ExamplePhases() {
	for _, p := range postreboot.Phases(postreboot.Options{Root: "/"}) {
		fmt.Println(p.Name)
	}
	// Output:
	// api
	// join
	// bootstrap-complete
	// operators
	// available
	// clean-data
	// clean-scripts
	// clean-units
	// clean-program
}
