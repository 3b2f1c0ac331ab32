// SPDX-License-Identifier: Apache-2.0

// Package dist writes what a release has for downloads: archives of the programs with completions and man pages, SBOMs,
// the manifest of kubectl-sno for krew, images of several architectures, and checksums. The same commit, Go version and
// settings give the same bytes, in any folder.
package dist
