// SPDX-License-Identifier: Apache-2.0

// Command versions compares every go.mod with hack/versions.yaml, and with -write rewrites those that differ.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func main() {
	write := flag.Bool("write", false, "rewrite the go.mod files that differ; run `go mod tidy` in them afterwards")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	ws, err := workspace.Find(".")
	if err != nil {
		return err
	}
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	if write {
		changed, err := versions.Rewrite(file, ws)
		for _, dir := range changed {
			fmt.Printf("rewrote %s/go.mod\n", dir)
		}
		if err != nil {
			return err
		}
	}
	faults := versions.Compare(file, ws)
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d differences from hack/versions.yaml; `make versions` rewrites go.mod files", len(faults))
	}
	return nil
}
