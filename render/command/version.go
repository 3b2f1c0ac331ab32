// SPDX-License-Identifier: Apache-2.0

package command

import (
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// linkedVersion is set by the linker in archives of a release (make dist).
var linkedVersion string

// releaseVersion returns the version of the release, or that of the module for `go install MODULE@VERSION`.
func releaseVersion() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// newManPages returns a hidden command for packagers.
func newManPages() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write a man page for each command into a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, folder []string) error {
			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Manual: "sno", Source: "sno " + c.Root().Version}, folder[0])
		},
	}
}
