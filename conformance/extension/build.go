// SPDX-License-Identifier: Apache-2.0

package extension

import "runtime/debug"

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
