// SPDX-License-Identifier: Apache-2.0

// Package release builds container images of the repository's programs: static binaries that run as nobody, each with
// an SBOM in CycloneDX's format. The same sources, Go version and settings give the same images, in any folder.
package release
