// Package release makes container images around the repository's own programs: static binaries, as nobody, each with a list of what it was built from (an
// SBOM in CycloneDX's format). The same sources, the same Go and the same settings of it give the same images, wherever the checkout lies.
package release
