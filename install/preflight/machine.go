// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type link struct {
	Name      string   `json:"ifname"`
	Addresses []leased `json:"addr_info"`
}

type leased struct {
	Address   netip.Addr `json:"local"`
	Scope     string     `json:"scope"`
	Temporary bool       `json:"temporary"`
	Seconds   uint32     `json:"valid_life_time"`
	link      string
}

// address checks that the node keeps its address, which is in certificates of etcd and the API server (R-BIP-19). An
// address without an end is static. For a lease only a person can decide whether the DHCP server reserves it.
func (c *checker) address(ctx context.Context) []Finding {
	switch {
	case !c.Host && len(c.Addresses) > 0:
		return []Finding{ok("%v of the network configuration is in a machine network of %v", c.Addresses, c.MachineNetworks)}
	case !c.Host:
		return []Finding{warning("run preflight --host in the live system, or set the address with --network-config",
			"not known here: an address of the machine has to be in a machine network of %v", c.MachineNetworks)}
	}
	const advice = "install the program ip, of iproute2"
	out, err := c.program(ctx, "ip", "-json", "address", "show", "up")
	if err != nil {
		return []Finding{failed(advice, "%v", err)}
	}
	var links []link
	if err := json.Unmarshal(out, &links); err != nil {
		return []Finding{failed(advice, "ip -json address show up: %v", err)}
	}
	var all []leased
	var has []netip.Addr
	for _, l := range links {
		for _, a := range l.Addresses {
			if a.link = l.Name; a.Scope == "global" {
				all, has = append(all, a), append(has, a.Address)
			}
		}
	}
	var found []Finding
	for _, want := range c.Addresses {
		i := slices.IndexFunc(all, func(a leased) bool { return a.Address == want })
		if i < 0 {
			found = append(found, failed("set this address on the machine, or another in the settings",
				"no interface that is up has the node's address %s; this machine has %v", want, has))
			continue
		}
		found = append(found, c.lasting(all[i]))
	}
	if len(c.Addresses) > 0 {
		return found
	}
	for _, a := range all {
		if !a.Temporary && c.isNodes(a.Address) {
			found = append(found, c.lasting(a))
		}
	}
	if len(found) == 0 {
		found = append(found, failed("change networking.machineNetwork, or the machine's address",
			"no address of the machine is in a machine network of %v; it has %v", c.MachineNetworks, has))
	}
	return found
}

// lasting returns the finding about the lifetime of an address.
func (c *checker) lasting(a leased) Finding {
	static := slices.ContainsFunc(c.Static, func(p netip.Prefix) bool { return p.Addr() == a.Address })
	switch {
	case static:
		return ok("%s of %s is in the network configuration", a.Address, a.link)
	case a.Temporary:
		return failed("use the interface's stable address, or disable its privacy extensions (ipv6.ip6-privacy=0)",
			"%s of %s is a temporary address", a.Address, a.link)
	case a.Seconds == math.MaxUint32: // infinite
		return ok("%s of %s is static", a.Address, a.link)
	}
	return warning("reserve it for this machine in the DHCP server, or make it static with --network-config: with another "+
		"address the certificates of etcd and the API server are invalid",
		"%s of %s is leased, for another %s", a.Address, a.link, time.Duration(a.Seconds)*time.Second)
}

// minimumDisk is the minimum size of a disk in bytes.
const minimumDisk = 100 << 30

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
	if d.Size < minimumDisk {
		found = append(found, failed("use a larger one", "%s has %s, and needs %s", c.Disk, gib(d.Size), gib(minimumDisk)))
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

const maxSkew = time.Minute

// clock checks that the machine's clock is not before the time of the configuration, when its certificates were not
// valid, and compares it with the registries' clocks. The nearest of them counts, because they may be wrong too.
func (c *checker) clock(ctx context.Context) []Finding {
	const set = "set the machine's clock, in its firmware too, or configure a time server"
	now := c.Now().UTC().Truncate(time.Second)
	if now.Before(c.Created) {
		return []Finding{failed(set, "the clock has %s, and the configuration was made at %s", now.Format(time.RFC3339), c.Created.UTC().Format(time.RFC3339))}
	}
	at := now.Format(time.RFC3339)
	answers, _ := c.ask(ctx) // the check of the registries reports the error
	var nearest string
	var skew time.Duration
	for _, source := range c.Sources {
		for _, host := range source.Hosts {
			a := answers[host]
			if s := a.at.Sub(a.date); !a.date.IsZero() && (nearest == "" || s.Abs() < skew.Abs()) {
				nearest, skew = host, s
			}
		}
	}
	switch {
	case nearest == "":
		return []Finding{ok("the clock has %s", at)}
	case skew > maxSkew:
		return []Finding{warning(set, "the clock has %s, which is %s ahead of that of %s", at, skew.Round(time.Second), nearest)}
	case skew < -maxSkew:
		return []Finding{warning(set, "the clock has %s, which is %s behind that of %s", at, -skew.Round(time.Second), nearest)}
	}
	return []Finding{ok("the clock has %s, as that of %s", at, nearest)}
}

func (c *checker) program(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	// A process that the program has started may keep its output open.
	command.WaitDelay = time.Second
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}
