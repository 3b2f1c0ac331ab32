// SPDX-License-Identifier: Apache-2.0

// Package release releases the modules of hack/versions.yaml in lockstep, each with an annotated tag MODULE/VERSION,
// and checks a commit as another repository gets it: from a module proxy, without go.work and replace lines.
package release
