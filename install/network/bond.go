// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

var modes = []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}

// option has the allowed values and modes of a bond's option. NetworkManager refuses some options in other modes, and
// ignores others (U-INS-27).
type option struct {
	// words are values by name. NMState and the kernel also accept their indices.
	words       []string
	least, most int
	// other validates values of another form.
	other func(string) bool
	modes []string
}

const unbounded = 1<<31 - 1

var (
	lacp       = []string{"802.3ad"}
	withBackup = []string{"active-backup", "balance-tlb", "balance-alb"}
	withARP    = []string{"balance-rr", "active-backup", "balance-xor", "broadcast"}
)

// options are those of NetworkManager. It does not load a profile with another option.
var options = map[string]option{
	"ad_actor_sys_prio": {least: 1, most: 65535, modes: lacp},
	"ad_actor_system":   {other: isHardware, modes: lacp},
	"ad_select":         {words: []string{"stable", "bandwidth", "count"}},
	"ad_user_port_key":  {most: 1023, modes: lacp},
	"all_slaves_active": {words: []string{"dropped", "delivered"}},
	"arp_all_targets":   {words: []string{"any", "all"}},
	"arp_interval":      {most: unbounded, modes: withARP},
	"arp_ip_target":     {other: areTargets, modes: withARP},
	"arp_validate":      {words: []string{"none", "active", "backup", "all", "filter", "filter_active", "filter_backup"}, modes: withARP},
	"downdelay":         {most: unbounded},
	"fail_over_mac":     {words: []string{"none", "active", "follow"}},
	"lacp_rate":         {words: []string{"slow", "fast"}, modes: lacp},
	"lp_interval":       {least: 1, most: unbounded},
	"miimon":            {most: unbounded},
	"min_links":         {most: unbounded},
	"num_grat_arp":      {most: 255},
	"num_unsol_na":      {most: 255},
	"packets_per_slave": {most: 65535, modes: []string{"balance-rr"}},
	"primary":           {other: plainName.MatchString, modes: withBackup},
	"primary_reselect":  {words: []string{"always", "better", "failure"}},
	"resend_igmp":       {most: 255},
	"tlb_dynamic_lb":    {words: []string{"false", "true"}, modes: []string{"balance-tlb", "balance-alb"}},
	"updelay":           {most: unbounded},
	"use_carrier":       {words: []string{"false", "true"}},
	"xmit_hash_policy":  {words: []string{"layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"}},
}

// numbered are the options that NetworkManager accepts by number only.
var numbered = []string{"all_slaves_active", "tlb_dynamic_lb", "use_carrier"}

func isHardware(text string) bool { return hardware(text) != "" }

// areTargets reports whether a text has up to 16 IPv4 addresses.
func areTargets(text string) bool {
	targets := strings.Split(text, ",")
	return len(targets) <= 16 && !slices.ContainsFunc(targets, func(target string) bool {
		a, err := netip.ParseAddr(target)
		return err != nil || !a.Is4()
	})
}

func (r *reader) bond(at *field.Path, s stateBond, i *iface) {
	mode := text(s.Mode)
	if number, err := strconv.Atoi(mode); err == nil && number >= 0 && number < len(modes) {
		mode = modes[number]
	}
	i.options, i.ports = map[string]string{}, slices.Concat(s.Port, s.Ports)
	good := r.good(func() {
		r.oneOf(at.Child("mode"), mode, modes...)
		for n, port := range s.Port {
			r.deviceName(at.Child("port").Index(n), port)
		}
		for n, port := range s.Ports {
			r.deviceName(at.Child("ports").Index(n), port)
		}
		for name, value := range s.Options {
			if _, known := options[name]; !known {
				r.add(field.NotSupported(at.Child("options"), name, slices.Sorted(maps.Keys(options))))
				continue
			}
			i.options[name] = r.option(at.Child("options", name), value, name)
		}
	})
	switch {
	case !good:
	case mode == "":
		r.required(at.Child("mode"), "use one of "+strings.Join(modes, ", "))
	case len(i.ports) == 0:
		r.required(at.Child("port"), "set the interfaces of the bond")
	case len(s.Port) > 0 && len(s.Ports) > 0:
		r.add(field.Forbidden(at.Child("ports"), "it is the same field as port; keep that"))
	default:
		i.options["mode"] = mode
		r.together(at.Child("options"), i.options)
	}
}

// option returns the value of an option as NetworkManager reads it.
func (r *reader) option(at *field.Path, given any, name string) string {
	o, value := options[name], text(given)
	number, err := strconv.Atoi(value)
	_, isList := given.([]any)
	_, isMapping := given.(map[string]any)
	switch {
	case isList || isMapping:
		r.add(field.TypeInvalid(at, document.Omitted, "write one value"))
	case o.other != nil:
		if !o.other(value) {
			r.invalid(at, value, "see the kernel's documentation of bonding")
		}
	case o.words != nil:
		word := slices.Index(o.words, value)
		if err == nil {
			word = number
		}
		if word < 0 || word >= len(o.words) {
			r.add(field.NotSupported(at, value, o.words))
			return ""
		}
		if slices.Contains(numbered, name) {
			return strconv.Itoa(word)
		}
		return o.words[word]
	case err != nil || number < o.least || number > o.most:
		r.invalid(at, value, fmt.Sprintf("write a number from %d to %d", o.least, o.most))
	}
	return value
}

// together validates the combination of mode and options, as NetworkManager does.
func (r *reader) together(at *field.Path, o map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if allowed := options[name].modes; len(allowed) > 0 && !slices.Contains(allowed, o["mode"]) {
			r.add(field.Forbidden(at.Child(name), "not available in mode "+o["mode"]+"; remove it, or use mode "+strings.Join(allowed, ", ")))
		}
	}
	on := func(name string) bool { return o[name] != "" && o[name] != "0" }
	refuse := func(name, detail string) { r.invalid(at.Child(name), o[name], detail) }
	switch {
	case on("miimon") && on("arp_interval"):
		refuse("arp_interval", "there is miimon too; keep one")
	case on("arp_interval") != (o["arp_ip_target"] != ""):
		refuse("arp_interval", "arp_interval and arp_ip_target need each other; set both")
	case on("arp_validate") && o["arp_validate"] != "none" && !on("arp_interval"):
		refuse("arp_validate", "it has no effect without arp_interval; set that")
	}
	for _, name := range []string{"updelay", "downdelay"} {
		if on(name) && (o["miimon"] == "0" || on("arp_interval")) {
			refuse(name, "it has no effect without miimon; set that")
		}
	}
	if a, b := o["num_grat_arp"], o["num_unsol_na"]; a != "" && b != "" && a != b {
		refuse("num_unsol_na", "it is an alias of num_grat_arp, with another number; keep one")
	}
}

func (r *reader) ports(c *Config, bond *iface) {
	at := bond.at.Child("link-aggregation")
	for n, name := range bond.ports {
		where := at.Child("port").Index(n)
		port := r.named(c, where, name)
		switch {
		case port.kind != ethernet:
			r.invalid(where, name, "it is a "+port.kind+"; use ethernet interfaces")
		case port.controller != "":
			r.invalid(where, name, "it is a port of "+port.controller+" already; keep one")
		case slices.ContainsFunc(c.interfaces, func(i *iface) bool { return i.base == name }):
			r.invalid(where, name, "it is below a VLAN; put the VLAN on the bond")
		}
		port.controller = bond.name
	}
	primary := bond.options["primary"]
	switch {
	case primary == "":
	case !slices.Contains(bond.ports, primary):
		r.add(field.NotSupported(at.Child("options", "primary"), primary, bond.ports))
	case c.find(primary).identifier != "":
		r.invalid(at.Child("options", "primary"), primary, "it is identified by an address, and may have another name; identify it by its name")
	}
}
