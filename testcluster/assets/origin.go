// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// Built is the origin of programs that this package has built.
	Built = "built from source"
	// Given is the origin of programs in a folder of which nothing else is known.
	Given = "given folder"
)

var digestPattern = regexp.MustCompile(` sha256 [0-9a-f]+`)

// Summary returns the version and the origin without digests, such as "Kubernetes v1.35.2, downloaded from dl.k8s.io:
// kube-apiserver".
func (a Assets) Summary() string {
	return "Kubernetes " + a.Version + ", " + digestPattern.ReplaceAllString(a.Origin, "")
}

// originFile is in folders with downloaded programs.
const originFile = "origin.json"

// programOrigin is the origin of one program.
type programOrigin struct {
	// Host is empty for a program that was built from source.
	Host   string `json:"host,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// describe returns the origins as one line, such as "downloaded from dl.k8s.io: kubelet sha256 12ab...; built from
// source: kwok".
func describe(programs map[string]programOrigin) string {
	byHost := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		origin := programs[name]
		if origin.Host != "" {
			name += " sha256 " + origin.SHA256
		}
		byHost[origin.Host] = append(byHost[origin.Host], name)
	}
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		if host != "" {
			parts = append(parts, "downloaded from "+host+": "+strings.Join(byHost[host], ", "))
		}
	}
	if built := byHost[""]; len(parts) == 0 {
		return Built
	} else if len(built) > 0 {
		parts = append(parts, Built+": "+strings.Join(built, ", "))
	}
	return strings.Join(parts, "; ")
}

func writeOrigin(dir string, programs map[string]programOrigin) error {
	data, err := json.MarshalIndent(programs, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, originFile), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the origin of the programs: %w", err)
	}
	return nil
}

// readOrigin returns the origin of a folder's programs, or instead for a folder without a record of it.
func readOrigin(dir, instead string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, originFile))
	if errors.Is(err, fs.ErrNotExist) {
		return instead, nil
	}
	var programs map[string]programOrigin
	if err == nil {
		err = json.Unmarshal(data, &programs)
	}
	if err != nil {
		return "", fmt.Errorf("read the origin of the programs in %s: %w", dir, err)
	}
	return describe(programs), nil
}
