// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"errors"
	"fmt"
	"slices"

	shared "github.com/coreos/ignition/v2/config/shared/errors"
	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// ErrVersion is in the error of a config with a spec other than 3.0.0 to 3.6.0.
var ErrVersion = errors.New("spec that is not supported")

// Parsed is a parsed config.
type Parsed struct {
	Version string
	config  types.Config
}

// Parse parses a config of spec 3.0.0 to 3.6.0. name is its file or URL in errors. What Ignition would ignore is an
// error, because it would be lost.
func Parse(name string, text []byte) (*Parsed, error) {
	version, r, err := util.GetConfigVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrInvalid, errors.Join(entries(r), err))
	}
	c, r, err := v3_6.ParseCompatibleVersion(text)
	switch {
	case errors.Is(err, shared.ErrUnknownVersion):
		return nil, fmt.Errorf("%s: ignition.version: %w: %s; use one from 3.0.0 to 3.6.0", name, ErrVersion, version)
	case err != nil || len(lost(r).Entries) > 0:
		return nil, fmt.Errorf("%s: %w: %w", name, ErrInvalid, errors.Join(entries(lost(r)), err))
	}
	return &Parsed{Version: version.String(), config: c}, nil
}

// Paths returns the paths of all files, folders and links, sorted.
func (p *Parsed) Paths() []string {
	var paths []string
	for _, n := range nodes(p.config) {
		paths = append(paths, n.Path)
	}
	slices.Sort(paths)
	return paths
}

func nodes(c types.Config) []types.Node {
	var all []types.Node
	for _, f := range c.Storage.Files {
		all = append(all, f.Node)
	}
	for _, d := range c.Storage.Directories {
		all = append(all, d.Node)
	}
	for _, l := range c.Storage.Links {
		all = append(all, l.Node)
	}
	return all
}
