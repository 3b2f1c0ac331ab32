// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/solonode/sno/render/inputs"
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

func isHardware(text string) bool {
	r, address := &reader{}, ""
	r.hardware(&address)("", &yaml.Node{Value: text})
	return address != ""
}

// areTargets reports whether a text has up to 16 IPv4 addresses.
func areTargets(text string) bool {
	targets := strings.Split(text, ",")
	return len(targets) <= 16 && !slices.ContainsFunc(targets, func(target string) bool {
		a, err := netip.ParseAddr(target)
		return err != nil || !a.Is4()
	})
}

func (r *reader) bond(at string, n *yaml.Node, i *iface) {
	i.options = map[string]string{}
	mode := ""
	ports := func(at string, n *yaml.Node) {
		r.list(at, n, func(at string, n *yaml.Node) {
			port := ""
			r.deviceName(&port)(at, n)
			i.ports = append(i.ports, port)
		})
	}
	before := len(r.faults)
	r.mapping(at, n, fields{
		"mode": func(at string, n *yaml.Node) {
			if number, err := strconv.Atoi(n.Value); err == nil && number >= 0 && number < len(modes) {
				mode = modes[number]
				return
			}
			r.oneOf(&mode, modes...)(at, n)
		},
		"options": func(at string, n *yaml.Node) {
			known := fields{}
			for name := range options {
				known[name] = func(at string, n *yaml.Node) { i.options[name] = r.option(at, n, name) }
			}
			r.mapping(at, n, known)
		},
		"port": ports, "ports": ports,
	})
	if len(r.faults) > before {
		return
	}
	if mode == "" {
		r.fault(inputs.ErrMissing, at+".mode", "use one of "+strings.Join(modes, ", "), "the mode is missing")
		return
	}
	i.options["mode"] = mode
	if len(i.ports) == 0 {
		r.fault(inputs.ErrMissing, at+".port", "set the interfaces of the bond", "the bond has no ports")
	}
	if _, both := r.lines[at+".ports"]; both && r.lines[at+".port"] > 0 {
		r.fault(inputs.ErrDuplicate, at+".ports", "keep port", "it is the same field as port")
	}
	r.together(at+".options", i.options)
}

func (r *reader) option(at string, n *yaml.Node, name string) string {
	o, value := options[name], n.Value
	switch number, err := strconv.Atoi(value); {
	case n.Kind != yaml.ScalarNode:
		r.fault(inputs.ErrInvalid, at, "write one value", "not a single value")
	case o.other != nil:
		if !o.other(value) {
			r.fault(inputs.ErrInvalid, at, "see the kernel's documentation of bonding", "invalid value %q", value)
		}
	case o.words != nil:
		word := slices.Index(o.words, value)
		if err == nil {
			word = number
		}
		if word < 0 || word >= len(o.words) {
			r.fault(inputs.ErrInvalid, at, "use one of "+strings.Join(o.words, ", "), "unknown value %q", value)
			break
		}
		if slices.Contains(numbered, name) {
			return strconv.Itoa(word)
		}
		return o.words[word]
	case err != nil || number < o.least || number > o.most:
		r.fault(inputs.ErrInvalid, at, fmt.Sprintf("write a number from %d to %d", o.least, o.most), "invalid number %q", value)
	}
	return value
}

// together validates the combination of mode and options, as NetworkManager does.
func (r *reader) together(at string, o map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if allowed := options[name].modes; len(allowed) > 0 && !slices.Contains(allowed, o["mode"]) {
			r.fault(inputs.ErrInvalid, at+"."+name, "remove it, or use mode "+strings.Join(allowed, ", "), "not available in mode %s", o["mode"])
		}
	}
	on := func(name string) bool { return o[name] != "" && o[name] != "0" }
	switch {
	case on("miimon") && on("arp_interval"):
		r.fault(inputs.ErrInvalid, at+".arp_interval", "keep one", "there is miimon too")
	case on("arp_interval") != (o["arp_ip_target"] != ""):
		r.fault(inputs.ErrInvalid, at+".arp_interval", "set both", "arp_interval and arp_ip_target need each other")
	case on("arp_validate") && o["arp_validate"] != "none" && !on("arp_interval"):
		r.fault(inputs.ErrInvalid, at+".arp_validate", "set arp_interval", "arp_validate has no effect without arp_interval")
	}
	for _, name := range []string{"updelay", "downdelay"} {
		if on(name) && (o["miimon"] == "0" || on("arp_interval")) {
			r.fault(inputs.ErrInvalid, at+"."+name, "set miimon", "it has no effect without miimon")
		}
	}
	if a, b := o["num_grat_arp"], o["num_unsol_na"]; a != "" && b != "" && a != b {
		r.fault(inputs.ErrInvalid, at+".num_unsol_na", "keep one", "it is an alias of num_grat_arp, with another number")
	}
}

func (r *reader) ports(c *Config, bond *iface) {
	at := bond.at + ".link-aggregation"
	for n, name := range bond.ports {
		field := fmt.Sprintf("%s.port[%d]", at, n)
		port := r.named(c, field, name)
		switch {
		case port.kind != ethernet:
			r.fault(inputs.ErrUnsupported, field, "use ethernet interfaces", "%s is a %s", name, port.kind)
		case port.controller != "":
			r.fault(inputs.ErrDuplicate, field, "keep one", "%s is a port of %s already", name, port.controller)
		case slices.ContainsFunc(c.interfaces, func(i *iface) bool { return i.base == name }):
			r.fault(inputs.ErrInvalid, field, "put the VLAN on the bond", "%s is below a VLAN", name)
		}
		port.controller = bond.name
	}
	primary := bond.options["primary"]
	switch {
	case primary == "":
	case !slices.Contains(bond.ports, primary):
		r.fault(inputs.ErrInvalid, at+".options.primary", "use one of "+strings.Join(bond.ports, ", "), "%q is not a port of the bond", primary)
	case c.find(primary).identifier != "":
		r.fault(inputs.ErrInvalid, at+".options.primary", "identify the interface by its name", "%s is identified by an address, and may have another name", primary)
	}
}
