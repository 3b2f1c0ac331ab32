// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// unversioned is Go's version of a module in a folder.
const unversioned = "(devel)"

// SBOM lists the modules of a binary and Go's library like cyclonedx-gomod: from what the linker has written into the
// binary. It has no serial number and no time, so that the same binary has the same list. The version, if any, is that
// of the program and of its siblings in folders, which the linker does not know.
func SBOM(binary []byte, version string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("read the build information: %w", err)
	}
	if version != "" {
		for _, module := range append(info.Deps, &info.Main) {
			if strings.HasPrefix(module.Path, repository) && module.Version == unversioned {
				module.Version = version
			}
		}
	}
	sum := sha256.Sum256(binary)
	program := component(&info.Main)
	program.Type, program.Name = cyclonedx.ComponentTypeApplication, path.Base(info.Path)
	program.PackageURL += "#" + strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")
	program.BOMRef = program.PackageURL
	program.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}

	all := []cyclonedx.Component{library(info.GoVersion)}
	for _, module := range info.Deps {
		all = append(all, component(module))
	}
	var parts []string
	for _, c := range all {
		parts = append(parts, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &program}
	bom.Components = &all
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &parts}}
	var text bytes.Buffer
	// Not every scanner reads the newest version.
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return text.Bytes(), err
}

func component(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil && module.Replace.Version != "" { // not a folder
		module = module.Replace
	}
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: packageURL(module.Path, module.Version),
	}
	c.BOMRef = c.PackageURL
	if sum, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		if digest, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
		}
	}
	return c
}

// library returns Go's own library, which has most vulnerabilities. It is no module, and scanners know it by this name.
func library(version string) cyclonedx.Component {
	version, _, _ = strings.Cut(version, " ") // experiments follow
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: "stdlib", Version: version, PackageURL: packageURL("stdlib", strings.TrimPrefix(version, "go")),
	}
	c.BOMRef = c.PackageURL
	return c
}

// packageURL returns a URL in lower case, as the specification requires for Go, without a missing version.
func packageURL(module, version string) string {
	at := "pkg:golang/" + strings.ToLower(module)
	if version == "" || version == unversioned {
		return at
	}
	return at + "@" + url.QueryEscape(version)
}
