// SPDX-License-Identifier: Apache-2.0

// Package versions compares every go.mod of the repository with hack/versions.yaml, the only place where versions are
// pinned, and rewrites those that differ.
//
// All modules are built on one set of versions. Libraries require a floor, the lowest that compile and pass, because
// each of their requirements is a lower bound for who vendors them. `make release-check` tests them on the floor and
// on the newest versions.
package versions
