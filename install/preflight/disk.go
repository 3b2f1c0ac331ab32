// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultMinimumDisk is the minimum size of a disk in bytes.
const DefaultMinimumDisk = 100 << 30

// device is a block device in the output of lsblk. Its children are its partitions, and devices that use it.
type device struct {
	Path        string    `json:"path"`
	Type        string    `json:"type"`
	Size        int64     `json:"size"`
	ReadOnly    bool      `json:"ro"`
	Mountpoints []*string `json:"mountpoints"`
	Children    []device  `json:"children"`
}

// disk checks that coreos-installer can write the disk, before the control plane runs. The live medium is mounted, so
// it is refused like any disk in use (U-INS-30).
func (c *checker) disk(ctx context.Context) []Finding {
	const name = "use a whole disk, best by /dev/disk/by-id/...: lsblk --paths --nodeps lists them"
	if c.Disk == "" {
		return []Finding{failed(name, "no disk is set")}
	}
	if !c.Host {
		return []Finding{warning("run preflight --host in the live system", "not known here: whether %s is a whole disk, large enough and not in use", c.Disk)}
	}
	// The links of /dev/disk are absolute, so they cannot be followed below Root.
	if _, err := os.Lstat(filepath.Join(c.Root, c.Disk)); err != nil {
		return []Finding{failed(name, "%s does not exist: %v", c.Disk, err)}
	}
	out, err := c.program(ctx, "lsblk", "--json", "--bytes", "--output", "PATH,TYPE,SIZE,RO,MOUNTPOINTS", c.Disk)
	if err != nil {
		return []Finding{failed(name, "%v", err)}
	}
	var listed struct {
		Devices []device `json:"blockdevices"`
	}
	if err := json.Unmarshal(out, &listed); err != nil || len(listed.Devices) != 1 {
		return []Finding{failed(name, "lsblk %s: the output is not one device: %q (%v)", c.Disk, out, err)}
	}
	d := listed.Devices[0]
	var found []Finding
	if slices.Contains([]string{"part", "lvm", "crypt", "rom"}, d.Type) {
		found = append(found, failed(name, "%s is not a whole disk, but of type %s", c.Disk, d.Type))
	}
	if d.ReadOnly {
		found = append(found, failed("make it writable, or use another", "%s is read-only", c.Disk))
	}
	if d.Size < c.MinimumDisk {
		found = append(found, failed("use a larger one", "%s has %s, and needs %s", c.Disk, gib(d.Size), gib(c.MinimumDisk)))
	}
	if users := d.users(); len(users) > 0 {
		found = append(found, failed("use another, or release this one: umount, swapoff, vgchange -an, mdadm --stop",
			"%s is in use: %s", c.Disk, strings.Join(users, ", ")))
	}
	if len(found) == 0 {
		found = append(found, ok("%s is a whole disk of %s, and not in use", c.Disk, gib(d.Size)))
	}
	return found
}

func (d *device) users() []string {
	var users []string
	for _, at := range d.Mountpoints {
		if at != nil {
			users = append(users, d.Path+" is mounted on "+*at)
		}
	}
	for _, child := range d.Children {
		if child.Type != "part" {
			users = append(users, d.Path+" is used by "+child.Path)
		}
		users = append(users, child.users()...)
	}
	return users
}

func gib(size int64) string { return fmt.Sprintf("%.1f GiB (%d bytes)", float64(size)/(1<<30), size) }
