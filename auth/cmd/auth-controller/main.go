// SPDX-License-Identifier: Apache-2.0

// Command auth-controller patches the Authentication and the OAuth Deployments; see README.md.
package main

import (
	"os"

	"github.com/solonode/sno/auth/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("auth-controller", os.Args[1:], &controller.Module{}))
}
