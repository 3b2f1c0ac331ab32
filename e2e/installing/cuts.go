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
	// PerPhase is how many there are in each phase, and RandomStart the start value of the random numbers.
	PerPhase    int
	RandomStart uint64
}

// InPlacePowerCuts is bootstrap in place with power cuts in the live system, and in the first boot of the installed node.
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

// point is one power cut.
type point struct {
	at time.Duration
	// ran is what the command did then, and after is what became of the machine.
	ran, after string
}

// points are spread over a length at random. Each phase has its own.
func (c PowerCuts) points(phase uint64, length time.Duration) []point {
	random := rand.New(rand.NewPCG(c.RandomStart, phase)) //nolint:gosec // not for a secret
	all := make([]point, c.PerPhase)
	for i := range all {
		all[i].at = time.Duration(random.Int64N(int64(length)))
	}
	slices.SortFunc(all, func(a, b point) int { return int(a.at - b.at) })
	return all
}

// printPoints writes a table.
func printPoints(out io.Writer, points []point) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CUT AT\tIN\tAFTERWARDS")
	for _, p := range points {
		fmt.Fprintf(table, "%.1f s\t%s\t%s\n", p.at.Seconds(), p.ran, p.after)
	}
	return table.Flush() //nolint:wrapcheck // the caller says of what
}

// cutAll has one of the functions cut the power at each point, and shows what became of it.
func (m *Machine) cutAll(ctx context.Context, phase uint64, length time.Duration, cut func(context.Context, *point) error) error {
	m.say("%d power cuts in %.1f s, start value %d", m.PowerCuts.PerPhase, length.Seconds(), m.PowerCuts.RandomStart)
	points := m.PowerCuts.points(phase, length)
	for i := range points {
		if err := cut(ctx, &points[i]); err != nil {
			return fmt.Errorf("power cut at %.1f s, in %s, start value %d: %w", points[i].at.Seconds(), points[i].ran, m.PowerCuts.RandomStart, err)
		}
		m.say("  %d of %d, at %.1f s: %s: %s", i+1, len(points), points[i].at.Seconds(), points[i].ran, points[i].after)
	}
	if m.Config.Progress == nil {
		return nil
	}
	return printPoints(m.Config.Progress, points)
}

// cutLive cuts the power of the live system. Afterwards the disk is either one that cannot be booted, or complete. The last run goes to its end.
func cutLive(ctx context.Context, m *Machine) error {
	if err := live(ctx, m); err != nil {
		return err
	}
	if err := m.node.WipeDisk(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	length := m.lived
	if err := m.cutAll(ctx, 0, length, func(ctx context.Context, p *point) error {
		return m.liveUntil(ctx, p, func(ctx context.Context, _ *nodemachine.Machine) error { return elapse(ctx, p.at) })
	}); err != nil {
		return err
	}
	// Writing is short, so no point may be in it.
	p := point{at: length}
	if err := m.liveUntil(ctx, &p, writes); err != nil {
		return fmt.Errorf("power cut while the disk is written: %w", err)
	}
	m.say("  while the disk is written: %s", p.after)
	if p.after != notBootable {
		return fmt.Errorf("power cut while the disk is written: %w: %s", errDisk, p.after)
	}
	return live(ctx, m)
}

// elapse returns after a time.
func elapse(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller says of what
	case <-time.After(d):
		return nil
	}
}

// writes returns when a part of the config is on the disk, and not all of it.
func writes(ctx context.Context, live *nodemachine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		// Asking from outside takes longer than writing does.
		if _, err := live.Exec(ctx, "sh", "-c", "until [ -s /disk/boot/ignition/config.ign ]; do :; done"); err == nil || ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // the caller says of what
		}
	}
}

const (
	notBootable = "the disk is not bootable; the live system is booted again"
	complete    = "the disk is complete"
)

var errDisk = errors.New("a disk that is not complete is booted")

// liveUntil boots the live system until its power is cut, when a function has returned, and looks at the disk.
func (m *Machine) liveUntil(ctx context.Context, p *point, when func(context.Context, *nodemachine.Machine) error) (err error) {
	live, err := m.liveSystem(ctx, liveConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	if err := live.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := when(ctx, live); err != nil {
		return err
	}
	p.ran = running(ctx, live, "bootstrap-in-place")
	if err := live.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	p.after, err = m.diskNow(ctx)
	return err
}

// diskNow looks at the disk after a cut: either the machine's firmware refuses it, or it is complete.
func (m *Machine) diskNow(ctx context.Context) (string, error) {
	config, err := m.node.ExecOnDisk(ctx, "if [ -e boot/bootable ]; then cat boot/ignition/config.ign; fi")
	switch {
	case err != nil:
		return "", errors.Join(errDisk, err)
	case config != "" && !json.Valid([]byte(config)):
		return "", fmt.Errorf("%w: %d bytes of a config", errDisk, len(config))
	case config != "":
		// The next live system begins with a disk that has never been booted, so this one is not.
		return complete, m.node.WipeDisk(ctx) //nolint:wrapcheck // it says of what
	}
	if err := m.node.Start(ctx); !errors.Is(err, nodemachine.ErrNoDisk) {
		return "", errors.Join(errDisk, err)
	}
	return notBootable, nil
}

// running returns what a command does on a machine.
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

// cutNode cuts the power of the first boot of a node: once it goes on by itself, all checks pass.
func cutNode(ctx context.Context, m *Machine) error {
	kept, err := m.node.HasSavedDisk(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	keep := m.node.SaveDisk
	if kept {
		// An earlier run has left the machine on.
		if err := m.node.PowerCut(ctx); err != nil {
			return err //nolint:wrapcheck // it says of what
		}
		keep = m.node.RestoreDisk
	}
	if err := keep(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := boot(ctx, m); err != nil {
		return err
	}
	if err := goodAtFirst(ctx, m); err != nil {
		return err
	}
	return m.cutAll(ctx, 1, m.lived, m.cutNodeAt)
}

func (m *Machine) cutNodeAt(ctx context.Context, p *point) error {
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.node.RestoreDisk(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.node.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	// Whoever is hostile begins before the cut.
	before, cancel := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if m.node.WaitBooted(before) == nil && m.prepare(before) == nil {
			_ = m.wait(before, ask)
		}
	}()
	err := elapse(ctx, p.at)
	cancel()
	<-asked
	if err != nil {
		return err
	}
	p.ran = running(ctx, m.node, m.way.command)
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	began := time.Now()
	err = m.recovers(ctx)
	var s said
	switch {
	case errors.As(err, &s) && s.advises():
		p.after = "said: " + string(s)
	case err != nil:
		return err
	default:
		p.after = fmt.Sprintf("goes on, and is good after %.1f s", time.Since(began).Seconds())
	}
	return nil
}

// said is what a unit says that has failed for good.
type said string

func (s said) Error() string { return "it does not go on: " + string(s) }

// advises reports whether it has advice for a person.
func (s said) advises() bool {
	return slices.ContainsFunc([]string{"install the node again", "change what the error names"}, func(advice string) bool {
		return strings.Contains(string(s), advice)
	})
}

// recovers turns the machine on, and passes the checks, or returns what is said by a unit that has failed for good.
func (m *Machine) recovers(ctx context.Context) error {
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	m.api.at(m.node.Address())
	if err := errors.Join(m.prepare(ctx), m.bringWebServer(ctx)); err != nil {
		return err
	}
	group, all := errgroup.WithContext(ctx)
	all, end := context.WithCancel(all)
	group.Go(func() error {
		defer end()
		for _, c := range append([]check{ask}, m.checks()...) {
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
				return said(strings.Join(strings.Fields(text), " "))
			}
			select {
			case <-all.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
	return group.Wait() //nolint:wrapcheck // its functions have
}

// failedUnits prints the last line of those of the installation that nobody starts again.
const failedUnits = `for unit in etcd-restore post-reboot aiokube bootkube; do
if systemctl is-failed --quiet $unit.service; then journalctl --boot --unit $unit.service --lines 3 --output cat --no-pager; fi; done`
