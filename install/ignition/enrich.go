package ignition

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// ErrPointer is in the error of a config that takes further configs from elsewhere: what they hold would win, unseen.
var ErrPointer = errors.New("it merges or replaces configs from elsewhere; give the config itself")

// Enrich returns the original config, which comes from name, with what the Builder has. All that the original says stays as it is
// (R-BIP-11). Conflicts are ErrConflict and name both sources, all at once. The version of the spec is at least the original's.
func Enrich(name string, original []byte, additions *Builder) ([]byte, error) {
	parsed, err := Parse(name, original)
	if err != nil {
		return nil, err
	}
	c := parsed.config
	if len(c.Ignition.Config.Merge) > 0 || c.Ignition.Config.Replace.Source != nil {
		return nil, fmt.Errorf("%s: ignition.config: %w", name, ErrPointer)
	}
	faults := slices.Concat(additions.faults, additions.conflicts(name, c))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return encode(merge(c, additions.config), max(parsed.Version, specs[0].version))
}

// merge joins two configs that have nothing in common, by Ignition's own rules.
func merge(parent, child types.Config) types.Config { return v3_6.Merge(parent, child) }

// conflicts returns a fault for each path, unit, drop-in and user that both have, and for each path of one that lies below a file or link
// of the other.
func (b *Builder) conflicts(name string, original types.Config) []error {
	var faults []error
	conflict := func(thing string) {
		faults = append(faults, fmt.Errorf("%s: %w: %s and %s", thing, ErrConflict, name, b.sources[thing]))
	}
	theirs := map[string]bool{}
	for _, n := range nodes(original) {
		theirs[n.Path] = true
	}
	leaves := leavesOf(original)
	ourLeaves := leavesOf(b.config)
	for _, n := range nodes(b.config) {
		switch above := leafAbove(n.Path, leaves); {
		case theirs[n.Path]:
			conflict("path " + n.Path)
		case above != "":
			faults = append(faults, fmt.Errorf("path %s: %w: %s has %s, which is no folder, and %s", n.Path, ErrConflict, name, above, b.sources["path "+n.Path]))
		}
	}
	for _, n := range nodes(original) {
		if above := leafAbove(n.Path, ourLeaves); above != "" {
			faults = append(faults, fmt.Errorf("path %s: %w: %s, and %s has %s, which is no folder", n.Path, ErrConflict, name, b.sources["path "+above], above))
		}
	}
	for _, u := range original.Systemd.Units {
		if _, ours := b.sources["unit "+u.Name]; ours {
			conflict("unit " + u.Name)
		}
		for _, d := range u.Dropins {
			if thing := "drop-in " + u.Name + " " + d.Name; b.sources[thing] != "" {
				conflict(thing)
			}
		}
	}
	for _, u := range original.Passwd.Users {
		if _, ours := b.sources["user "+u.Name]; ours {
			conflict("user " + u.Name)
		}
	}
	return faults
}

// leavesOf returns the paths below which nothing can be.
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

// leafAbove returns the leaf below which the path lies, or nothing.
func leafAbove(p string, leaves map[string]bool) string {
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if leaves[dir] {
			return dir
		}
	}
	return ""
}
