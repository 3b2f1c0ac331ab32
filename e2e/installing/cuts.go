// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// PowerCuts are power cuts at random points.
type PowerCuts struct {
	PerPhase int
	Seed     uint64
}

// InPlacePowerCuts is bootstrap in place with power cuts in the live system, and in the first boot of the installed
// node.
var InPlacePowerCuts = Method{
	Name: "in-place-cuts", Title: "Bootstrap in place, with power cuts", command: InPlace.command, PowerCuts: true,
	steps: []step{
		{"config", configInPlace},
		{"live", cutLive},
		{"node", cutNode},
	},
	checks: slices.Concat(installed, pending()),
}

// AllInOnePowerCuts is an all-in-one node with power cuts in its first boot.
var AllInOnePowerCuts = Method{
	Name: "all-in-one-cuts", Title: "All in one, with power cuts", command: AllInOne.command, PowerCuts: true,
	steps: []step{
		{"config", func(ctx context.Context, m *Machine) error { return configAllInOne(ctx, m) }},
		{"node", cutNode},
	},
	checks: AllInOne.checks,
}

type point struct {
	at time.Duration
	// ran is what the command did at the cut, and after the state of the machine afterwards.
	ran, after string
}

// points returns points at random, sorted. Each phase has its own.
func (c PowerCuts) points(phase uint64, length time.Duration) []point {
	random := rand.New(rand.NewPCG(c.Seed, phase)) //nolint:gosec // not for a secret
	all := make([]point, c.PerPhase)
	for i := range all {
		all[i].at = time.Duration(random.Int64N(int64(length)))
	}
	slices.SortFunc(all, func(a, b point) int { return int(a.at - b.at) })
	return all
}

func printPoints(out io.Writer, points []point) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CUT AT\tIN\tAFTERWARDS")
	for _, p := range points {
		fmt.Fprintf(table, "%.1f s\t%s\t%s\n", p.at.Seconds(), p.ran, p.after)
	}
	return table.Flush() //nolint:wrapcheck // the caller wraps it
}

// cutAll calls cut for each point, and prints the results.
func (m *Machine) cutAll(ctx context.Context, phase uint64, length time.Duration, cut func(context.Context, *point) error) error {
	m.logf("%d power cuts in %.1f s, -seed=%d", m.PowerCuts.PerPhase, length.Seconds(), m.PowerCuts.Seed)
	points := m.PowerCuts.points(phase, length)
	for i := range points {
		if err := cut(ctx, &points[i]); err != nil {
			return fmt.Errorf("power cut at %.1f s, in %s, -seed=%d: %w", points[i].at.Seconds(), points[i].ran, m.PowerCuts.Seed, err)
		}
		m.logf("  %d of %d, at %.1f s: %s: %s", i+1, len(points), points[i].at.Seconds(), points[i].ran, points[i].after)
	}
	if m.Config.Progress == nil {
		return nil
	}
	return printPoints(m.Config.Progress, points)
}

// cutLive cuts the power of the live system. Afterwards the disk is either not bootable or complete. The last run is
// not cut.
func cutLive(ctx context.Context, m *Machine) error {
	if err := live(ctx, m); err != nil {
		return err
	}
	if err := m.node.WipeDisk(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	length := m.uptime
	if err := m.cutAll(ctx, 0, length, func(ctx context.Context, p *point) error {
		return m.liveUntil(ctx, p, func(ctx context.Context, _ *nodemachine.Machine) error { return elapse(ctx, p.at) })
	}); err != nil {
		return err
	}
	// Writing is so short that possibly no random point is in it.
	p := point{at: length}
	if err := m.liveUntil(ctx, &p, writing); err != nil {
		return fmt.Errorf("power cut while the disk is written: %w", err)
	}
	m.logf("  while the disk is written: %s", p.after)
	if p.after != notBootable {
		return fmt.Errorf("power cut while the disk is written: %w: %s", errDisk, p.after)
	}
	return live(ctx, m)
}

func elapse(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller wraps it
	case <-time.After(d):
		return nil
	}
}

func writing(ctx context.Context, live *nodemachine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		// A poll from outside would take longer than the write.
		if _, err := live.Exec(ctx, "sh", "-c", "until [ -s /disk/boot/ignition/config.ign ]; do :; done"); err == nil || ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // the caller wraps it
		}
	}
}

const (
	notBootable = "the disk is not bootable; the live system is booted again"
	complete    = "the disk is complete"
)

var errDisk = errors.New("an incomplete disk is bootable")

func (m *Machine) liveUntil(ctx context.Context, p *point, when func(context.Context, *nodemachine.Machine) error) (err error) {
	live, err := m.liveSystem(ctx, liveConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	if err := live.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := when(ctx, live); err != nil {
		return err
	}
	p.ran = running(ctx, live, "bootstrap-in-place")
	if err := live.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	p.after, err = m.diskNow(ctx)
	return err
}

// diskNow returns the state of the disk: notBootable or complete. Any other state is an error.
func (m *Machine) diskNow(ctx context.Context) (string, error) {
	config, err := m.node.ExecOnDisk(ctx, "if [ -e boot/bootable ]; then cat boot/ignition/config.ign; fi")
	switch {
	case err != nil:
		return "", errors.Join(errDisk, err)
	case config != "" && !json.Valid([]byte(config)):
		return "", fmt.Errorf("%w: %d bytes of a config", errDisk, len(config))
	case config != "":
		// The next live system needs a disk that has never been booted.
		return complete, m.node.WipeDisk(ctx) //nolint:wrapcheck // names the object
	}
	if err := m.node.Start(ctx); !errors.Is(err, nodemachine.ErrNoDisk) {
		return "", errors.Join(errDisk, err)
	}
	return notBootable, nil
}

func running(ctx context.Context, on *nodemachine.Machine, command string) string {
	s, err := statusOf(ctx, on, command)
	if err != nil {
		return "off"
	}
	if s.State == done {
		return "after the command"
	}
	for _, p := range s.Phases {
		if p.State == "Running" {
			return p.Name
		}
	}
	if len(s.Phases) > 0 {
		return "between phases"
	}
	return "before the command"
}

// cutNode cuts the power during the first boot of a node. It has to pass all checks after the next boot.
func cutNode(ctx context.Context, m *Machine) error {
	kept, err := m.node.HasSavedDisk(ctx)
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	keep := m.node.SaveDisk
	if kept {
		// An earlier run has not turned the machine off.
		if err := m.node.PowerCut(ctx); err != nil {
			return err //nolint:wrapcheck // names the object
		}
		keep = m.node.RestoreDisk
	}
	if err := keep(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := boot(ctx, m); err != nil {
		return err
	}
	if err := passFirstChecks(ctx, m); err != nil {
		return err
	}
	return m.cutAll(ctx, 1, m.uptime, m.cutNodeAt)
}

func (m *Machine) cutNodeAt(ctx context.Context, p *point) error {
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.node.RestoreDisk(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.node.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	// The hostile requests begin before the cut.
	before, cancel := context.WithCancel(ctx)
	created := make(chan struct{})
	go func() {
		defer close(created)
		if m.node.WaitBooted(before) == nil && m.prepare(before) == nil {
			_ = m.wait(before, createHostile)
		}
	}()
	err := elapse(ctx, p.at)
	cancel()
	<-created
	if err != nil {
		return err
	}
	p.ran = running(ctx, m.node, m.way.command)
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	began := time.Now()
	err = m.recovers(ctx)
	var s unitFailure
	switch {
	case errors.As(err, &s) && s.advises():
		p.after = "failed with an advice: " + string(s)
	case err != nil:
		return err
	default:
		p.after = fmt.Sprintf("continues, and passes the checks after %.1f s", time.Since(began).Seconds())
	}
	return nil
}

// unitFailure is the last output of a unit that has failed and does not restart.
type unitFailure string

func (f unitFailure) Error() string { return "a unit has failed: " + string(f) }

// advises reports whether it contains an advice for a person.
func (f unitFailure) advises() bool {
	return slices.ContainsFunc([]string{"install the node again", "change what the error names"}, func(advice string) bool {
		return strings.Contains(string(f), advice)
	})
}

// recovers turns the machine on and passes the checks, or returns the unitFailure of a unit that does not restart.
func (m *Machine) recovers(ctx context.Context) error {
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	m.api.at(m.node.Address())
	if err := errors.Join(m.prepare(ctx), m.loadWebServerImage(ctx)); err != nil {
		return err
	}
	group, all := errgroup.WithContext(ctx)
	all, end := context.WithCancel(all)
	group.Go(func() error {
		defer end()
		for _, c := range append([]check{createHostile}, m.checks()...) {
			if err := m.wait(all, c); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for {
			if text, err := m.node.Exec(all, "sh", "-c", failedUnits); err == nil && text != "" {
				return unitFailure(strings.Join(strings.Fields(text), " "))
			}
			select {
			case <-all.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
	return group.Wait() //nolint:wrapcheck // its functions wrap theirs
}

const failedUnits = `for unit in etcd-restore post-reboot aiokube bootkube; do
if systemctl is-failed --quiet $unit.service; then journalctl --boot --unit $unit.service --lines 3 --output cat --no-pager; fi; done`
