// SPDX-License-Identifier: Apache-2.0

// Command versions rewrites the go.mod files that differ from hack/versions.yaml. Run `GOWORK=off go mod tidy` in them
// afterwards.
package main

import (
	"fmt"
	"os"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run() error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	changed, err := versions.Rewrite(file, ws)
	for _, dir := range changed {
		fmt.Printf("rewrote %s/go.mod\n", dir)
	}
	return err
}
