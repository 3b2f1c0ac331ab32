// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (p Program) info() *cobra.Command {
	return contract(&cobra.Command{
		Use: "info", Short: "Print the description of this extension", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return encodeOne(p.Out, info{APIVersion: apiVersion, Source: p.Build, Component: self, Suites: p.suites(), Images: images})
		},
	})
}

func (p Program) images() *cobra.Command {
	return contract(&cobra.Command{
		Use: "images", Short: "Print the images that the checks need", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return encodeOne(p.Out, images) },
	})
}

// Build describes the program according to the contract.
type Build struct {
	Commit       string `json:"commit"`
	BuildDate    string `json:"build_date"`
	GitTreeState string `json:"git_tree_state"`
}

// ReadBuild returns the version-control information of the Go build, if any.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{}
	}
	var b Build
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.BuildDate = setting.Value
		case "vcs.modified":
			b.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	return b
}

// String returns the version for reports.
func (b Build) String() string {
	if b.Commit == "" {
		return ""
	}
	if b.GitTreeState == "dirty" {
		return b.Commit + "-dirty"
	}
	return b.Commit
}

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
