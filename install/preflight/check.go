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
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/phase"
)

// The names of the checks, in their order.
const (
	DNS        = "dns"
	Address    = "address"
	Disk       = "disk"
	Clock      = "clock"
	Registries = "registries"
	Manifests  = "manifests"
)

// State is how a finding is.
type State string

// The states. A warning is what may be right, and what only a person can know.
const (
	StateOK      State = "ok"
	StateWarning State = "warning"
	StateFailed  State = "failed"
)

// Finding is what a check has found.
type Finding struct {
	Check   string
	State   State
	Message string
	// Advice is what to do. It is empty where all is in order.
	Advice string
}

// Input is what is checked.
type Input struct {
	// Checks are the names of those to do; empty is all for which there is input.
	Checks []string
	// Host is true on the machine itself, where Address and Disk are checked too.
	Host bool

	// Domain is the cluster's, such as sno.example.com.
	Domain string
	// Name is the node's name, without or with a domain; empty where it is not known yet.
	Name string
	// Addresses are the node's; empty where they are not known yet: then they are in MachineNetworks.
	Addresses       []netip.Addr
	MachineNetworks []netip.Prefix
	// Static are the addresses that the network configuration gives the node.
	Static []netip.Prefix

	// Disk is what will be written, and MinimumDisk is its least size in bytes; zero is DefaultMinimumDisk.
	Disk        string
	MinimumDisk int64

	// Created is when the configuration was made. No clock may be before that.
	Created time.Time

	Sources []Source
	// Proxy is the node's; nil is none, whatever the environment has.
	Proxy *installconfig.Proxy
	// NoProxy is what is reached without it; empty is the one of Proxy.
	NoProxy string
	// TrustBundle has certificates that are trusted besides the system's.
	TrustBundle string

	// Manifests are the user's own.
	Manifests []files.File

	// Root is the machine's root folder; empty is /.
	Root string
	// Programs is a folder with ip and lsblk; empty is where the system has its programs.
	Programs string
	// Now is the machine's clock, and Resolver its DNS; nil are the machine's own.
	Now      func() time.Time
	Resolver *net.Resolver
	// Timeout is that of one request; zero is ten seconds.
	Timeout time.Duration
}

// checker does the checks of one input.
type checker struct {
	Input
	answers map[string]answer
}

// Check returns what the checks find, in their order. It never waits longer than a few times Input.Timeout.
func Check(ctx context.Context, in Input) []Finding {
	c := &checker{Input: in}
	c.Root, c.MinimumDisk = cmp.Or(c.Root, "/"), cmp.Or(c.MinimumDisk, DefaultMinimumDisk)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
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
		{Address, in.Host, c.address},
		{Disk, in.Host && in.Disk != "", c.disk},
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
	names := []string{DNS, Address, Disk, Clock, Registries, Manifests}
	advice := "name some of " + strings.Join(names, ", ")
	for _, name := range in.Checks {
		if !slices.Contains(names, name) {
			found = append(found, Finding{name, StateFailed, "there is no such check", advice})
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

// Failed returns nil, or an error with phase.ErrInput that has the findings which failed, each with its advice.
func Failed(findings []Finding) error {
	var faults []error
	for _, f := range findings {
		if f.State == StateFailed {
			faults = append(faults, fmt.Errorf("%s: %s: %s", f.Check, f.Message, f.Advice)) //nolint:err113 // a finding
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", phase.ErrInput, errors.Join(faults...))
}

// Print writes the findings as a table, with each advice in a line below its finding.
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
