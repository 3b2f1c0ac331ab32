// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Names of the checks, in order.
const (
	DNS        = "dns"
	Address    = "address"
	Disk       = "disk"
	Image      = "image"
	Clock      = "clock"
	Registries = "registries"
	Manifests  = "manifests"
)

// State is the state of a finding.
type State string

// States. A warning needs the judgement of a person.
const (
	StateOK      State = "ok"
	StateWarning State = "warning"
	StateFailed  State = "failed"
)

// Finding is a result of a check.
type Finding struct {
	Check   string
	State   State
	Message string
	// Advice is what to do; empty for StateOK.
	Advice string
}

// Input of the checks.
type Input struct {
	// Checks are the names of the checks to run; empty runs all with input.
	Checks []string
	// Host means that the checks run on the machine itself. Elsewhere Address and Disk say what is not known.
	Host bool

	Domain string
	// Name of the node, with or without a domain; empty if unknown.
	Name string
	// Addresses of the node; empty if unknown, and then in MachineNetworks.
	Addresses       []netip.Addr
	MachineNetworks []netip.Prefix
	// Static are the node's addresses in the network configuration.
	Static []netip.Prefix

	// Disk is the disk to write.
	Disk string
	// Runtime is the container runtime that the machine's image must have, with all that goes with it; nil for none.
	Runtime *node.Runtime

	// Created is the time of the configuration. No clock may be before that.
	Created time.Time

	Sources []Source
	// Proxy of the node; nil is none, regardless of the environment.
	Proxy *installconfig.Proxy
	// NoProxy are its exceptions, with those of the cluster.
	NoProxy     string
	TrustBundle string

	Manifests []files.File
	// Creating means that kinds that nothing is known to serve are a warning, because a release may have more.
	Creating bool

	// Root is the machine's root folder; "" is /.
	Root string
	// Now and Resolver are the clock and the DNS; nil are the machine's.
	Now      func() time.Time
	Resolver *net.Resolver
	// Timeout of a request; 0 is ten seconds.
	Timeout time.Duration
}

type checker struct {
	Input
	answers map[string]answer
}

// Check returns the findings of the checks, in order. It takes at most a few times Input.Timeout.
func Check(ctx context.Context, in Input) []Finding {
	c := &checker{Input: in}
	c.Root, c.Timeout = cmp.Or(c.Root, "/"), cmp.Or(c.Timeout, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	checks := []struct {
		name    string
		applies bool
		run     func(context.Context) []Finding
	}{
		{DNS, in.Domain != "", c.dns},
		{Address, in.Host || in.Domain != "", c.address},
		{Disk, in.Disk != "", c.disk},
		{Image, in.Host && in.Runtime != nil, c.image},
		{Clock, true, c.clock},
		{Registries, len(in.Sources) > 0, c.registries},
		{Manifests, len(in.Manifests) > 0, c.manifests},
	}
	var found []Finding
	for _, check := range checks {
		if len(in.Checks) > 0 && !slices.Contains(in.Checks, check.name) || len(in.Checks) == 0 && !check.applies {
			continue
		}
		for _, f := range check.run(ctx) {
			f.Check = check.name
			found = append(found, f)
		}
	}
	return found
}

func ok(format string, args ...any) Finding {
	return Finding{State: StateOK, Message: fmt.Sprintf(format, args...)}
}

func warning(advice, format string, args ...any) Finding {
	return Finding{State: StateWarning, Message: fmt.Sprintf(format, args...), Advice: advice}
}

func failed(advice, format string, args ...any) Finding {
	return Finding{State: StateFailed, Message: fmt.Sprintf(format, args...), Advice: advice}
}

// Failed returns nil, or an error with phase.ErrInput and the failed findings with their advice.
func Failed(findings []Finding) error {
	var errs []error
	for _, f := range findings {
		if f.State == StateFailed {
			errs = append(errs, fmt.Errorf("%s: %s: %s", f.Check, f.Message, f.Advice)) //nolint:err113 // a finding
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", phase.ErrInput, errors.Join(errs...))
}

// Print prints the findings as a table, each with its advice on the next line.
func Print(w io.Writer, findings []Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STATE\tCHECK\tFINDING")
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, f.Message)
		if f.Advice != "" {
			fmt.Fprintf(table, "\t\t  what to do: %s\n", f.Advice)
		}
	}
	return table.Flush()
}
