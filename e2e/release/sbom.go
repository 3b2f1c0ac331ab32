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

// unversioned is what Go calls the version of a module that it finds in a folder.
const unversioned = "(devel)"

// sbom lists the modules that are linked into a binary, and Go's own library, as cyclonedx-gomod does it: by what the linker has written into the
// binary. It has no serial number and no time, so that the same binary has the same list.
func sbom(binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("read what it was built from: %w", err)
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

// library is Go's own: the one part that has faults most often. No module says so, and scanners know it by this name.
func library(version string) cyclonedx.Component {
	version, _, _ = strings.Cut(version, " ") // experiments follow
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: "stdlib", Version: version, PackageURL: packageURL("stdlib", strings.TrimPrefix(version, "go")),
	}
	c.BOMRef = c.PackageURL
	return c
}

// packageURL is in lower case, as the specification of package URLs has it for Go, and without a version where there is none.
func packageURL(module, version string) string {
	at := "pkg:golang/" + strings.ToLower(module)
	if version == "" || version == unversioned {
		return at
	}
	return at + "@" + url.QueryEscape(version)
}
