// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
)

// An installation folder without state is no error.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the example
	state, err := credentials.Open(dir, credentials.Options{Profile: inputs.Kubernetes, Domain: "sno.example.com", Now: time.Now()})
	fmt.Println(state == nil, err)
	// Output: true <nil>
}
