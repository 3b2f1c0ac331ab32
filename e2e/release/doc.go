// SPDX-License-Identifier: Apache-2.0

// Package release builds what a release consists of: container images of static binaries that run as nobody, each with
// an SBOM in CycloneDX's format, and for downloads archives of the programs with completions and man pages, the
// manifest of kubectl-sno for krew, images of several architectures, and checksums. The same sources, Go version and
// settings give the same bytes, in any folder.
package release
