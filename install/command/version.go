// SPDX-License-Identifier: Apache-2.0

package command

import "runtime/debug"

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
