// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"fmt"

	"github.com/solonode/sno/install/gather"
)

// Names are kept, and the rest of the line is replaced.
func ExampleRedact() {
	clean, kinds := gather.Redact(context.Background(), []byte("name: admin\npassword: hunter2\nHTTPS_PROXY=http://user:hunter2@proxy.example.com:3128\n"))
	fmt.Print(string(clean))
	fmt.Println(kinds)
	// Output:
	// name: admin
	// password: REDACTED
	// HTTPS_PROXY=http://REDACTED
	// [credentials in a URL password]
}
