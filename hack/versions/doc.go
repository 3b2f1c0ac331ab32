// SPDX-License-Identifier: Apache-2.0

// Package versions compares every go.mod of the repository with hack/versions.yaml, the only place where versions are
// pinned, and rewrites those that differ.
//
// All modules are on one set: the oldest versions that current operators have, because each requirement of a library is
// a lower bound for who vendors it. `make release-check` also builds the libraries on the newest versions.
package versions
