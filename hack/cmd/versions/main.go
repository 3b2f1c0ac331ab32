// SPDX-License-Identifier: Apache-2.0

// Command versions rewrites the go.mod files that differ from hack/versions.yaml. Run `GOWORK=off go mod tidy` in them
// afterwards. With -released it prints the folders of the modules that are released, and changes nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	released := flag.Bool("released", false, "print the modules that are released")
	flag.Parse()
	if err := run(*released); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(released bool) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	if released {
		fmt.Println(strings.Join(file.Release.Modules(), "\n"))
		return nil
	}
	changed, err := versions.Rewrite(file, ws)
	for _, dir := range changed {
		fmt.Printf("rewrote %s/go.mod\n", dir)
	}
	return err
}
