// SPDX-License-Identifier: Apache-2.0

// Package versions compares every go.mod of the repository with hack/versions.yaml, the only place where versions are
// pinned, and rewrites those that differ.
//
// There are two legs. Modules for vendoring are on the floor: the oldest versions that current operators have, because
// each requirement is a lower bound for modules that vendor them. Programs and tests are on the newest. In workspace
// mode Go selects the newest version for all, so a workspace build checks the newest leg and GOWORK=off checks the
// floor.
package versions
