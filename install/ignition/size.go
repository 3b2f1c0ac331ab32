// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Item is a part of a config, with its size.
type Item struct {
	Name  string // path or unit
	Bytes int
}

func (i Item) String() string { return fmt.Sprintf("%s %d bytes", i.Name, i.Bytes) }

// Largest returns the n largest parts of a config, the largest first, or nil for an invalid config.
func Largest(text []byte, n int) []Item {
	var c struct {
		Storage struct{ Files, Directories, Links []json.RawMessage }
		Systemd struct{ Units []json.RawMessage }
	}
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	var items []Item
	for _, raw := range slices.Concat(c.Storage.Files, c.Storage.Directories, c.Storage.Links, c.Systemd.Units) {
		var name struct{ Path, Name string }
		if json.Unmarshal(raw, &name) != nil {
			return nil
		}
		items = append(items, Item{Name: cmp.Or(name.Path, name.Name), Bytes: len(raw)})
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return items[:min(n, len(items))]
}
