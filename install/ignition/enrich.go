// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// ErrPointer is in the error of a config that refers to other configs, which would override the additions.
var ErrPointer = errors.New("it merges or replaces configs from elsewhere; give the config itself")

// Enrich returns the original config, whose source is name, with the parts of the Builder. The original is not changed
// (U-INS-9). The error has all conflicts, each with both sources. The version of the spec is at least the original's.
func Enrich(name string, original []byte, additions *Builder) ([]byte, error) {
	parsed, err := parseWhole(name, original)
	if err != nil {
		return nil, err
	}
	c := parsed.config
	if err := errors.Join(slices.Concat(additions.errs, conflicts(of(name, c), additions))...); err != nil {
		return nil, err
	}
	return encode(merge(c, additions.config), max(parsed.Version, specs[0].version))
}

// of returns a Builder with a config and its source.
func of(name string, c types.Config) *Builder {
	b := &Builder{config: c, sources: map[string]string{}}
	for _, t := range things(c) {
		b.sources[t] = name
	}
	return b
}

func parseWhole(name string, text []byte) (*Parsed, error) {
	parsed, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	if from := parsed.config.Ignition.Config; len(from.Merge) > 0 || from.Replace.Source != nil {
		return nil, fmt.Errorf("%s: ignition.config: %w", name, ErrPointer)
	}
	return parsed, nil
}

func merge(parent, child types.Config) types.Config { return v3_6.Merge(parent, child) }

// conflicts returns an error for each path, unit, drop-in and user in both, for each path of one below a file or link
// of the other, and for each path that would change the SSH keys of the other's users.
func conflicts(first, second *Builder) []error {
	var errs []error
	for _, t := range slices.Sorted(maps.Keys(second.sources)) {
		if other, taken := first.sources[t]; taken {
			errs = append(errs, fmt.Errorf("%s: %w: %s and %s", t, ErrConflict, other, second.sources[t]))
		}
	}
	return slices.Concat(errs, first.obstructs(second), second.obstructs(first))
}

// obstructs returns an error for each path of other that b's files, links or SSH keys exclude.
func (b *Builder) obstructs(other *Builder) []error {
	var errs []error
	leaves := leavesOf(b.config)
	for _, n := range nodes(other.config) {
		source := other.sources[thing(n.Path)]
		if above := leafAbove(n.Path, leaves); above != "" {
			errs = append(errs, fmt.Errorf("path %s: %w: %s has %s, which is no folder, and %s", n.Path, ErrConflict, b.sources[thing(above)], above, source))
		}
		if user := keysOf(n.Path, b.config.Passwd.Users); user != "" {
			errs = append(errs, fmt.Errorf("path %s: %w: %s has the SSH keys of user %s, and %s", n.Path, ErrConflict, b.sources["user "+user], user, source))
		}
	}
	return errs
}

// things returns the names that a config claims. A drop-in does not claim its unit.
func things(c types.Config) []string {
	var all []string
	for _, n := range nodes(c) {
		all = append(all, thing(n.Path))
	}
	for _, u := range c.Systemd.Units {
		if len(u.Dropins) == 0 || u.Contents != nil || u.Enabled != nil || u.Mask != nil {
			all = append(all, "unit "+u.Name)
		}
		for _, d := range u.Dropins {
			all = append(all, "drop-in "+u.Name+" "+d.Name)
		}
	}
	for _, u := range c.Passwd.Users {
		all = append(all, "user "+u.Name)
	}
	return all
}

// keysOf returns the user whose SSH keys are at or above the path, or "". /home is a link to /var/home on the machine.
func keysOf(p string, users []types.PasswdUser) string {
	for _, u := range users {
		homes := []string{"/home/" + u.Name, "/var/home/" + u.Name}
		if util.NotEmpty(u.HomeDir) {
			homes = []string{*u.HomeDir}
		}
		for _, home := range homes {
			if keys := path.Join(home, ".ssh"); p == keys || strings.HasPrefix(p, keys+"/") {
				return u.Name
			}
		}
	}
	return ""
}

func leavesOf(c types.Config) map[string]bool {
	leaves := map[string]bool{}
	for _, f := range c.Storage.Files {
		leaves[f.Path] = true
	}
	for _, l := range c.Storage.Links {
		leaves[l.Path] = true
	}
	return leaves
}

func leafAbove(p string, leaves map[string]bool) string {
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if leaves[dir] {
			return dir
		}
	}
	return ""
}
