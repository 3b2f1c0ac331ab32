// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Options of Phases.
type Options struct {
	Root string
	Host func() (controlplane.Host, error)
	// Check returns why the machine cannot be installed; nil checks nothing.
	Check func(ctx context.Context, s *node.Settings) error
	// Installer writes a system image and a config to a disk, with coreos-installer's arguments: "install --ignition-file
	// FILE [ARGUMENT...] DISK".
	Installer string
	// Podman reads the release payload, for profile openshift.
	Podman  string
	Restart []string
	// Program is the path of sno-install, which is copied to the installed node unless its image has it.
	Program   string
	Output    io.Writer
	Endpoints Endpoints
	Interval  time.Duration
}

// Endpoints are the endpoints of the control plane.
type Endpoints struct {
	// Etcd is a URL, and EtcdPort its HOST:PORT.
	Etcd, EtcdPort string
	// Ports are HOST:PORT of kube-apiserver, kube-controller-manager and kube-scheduler.
	Ports []string
}

// LocalEndpoints returns the endpoints of static pods on the machine itself.
func LocalEndpoints() Endpoints {
	return Endpoints{Etcd: "https://localhost:2379", EtcdPort: "localhost:2379", Ports: []string{"localhost:6443", "localhost:10257", "localhost:10259"}}
}

// Limits of the phases: generous, since they only end what hangs.
const (
	soon   = 2 * time.Minute
	short  = 10 * time.Minute
	long   = 30 * time.Minute
	longer = time.Hour
)

// Phases returns the phases of bootstrap in place (R-BIP-1, R-BIP-6, R-BIP-7, R-BIP-12, U-INS-5, U-INS-6).
// docs/install.md describes them.
func Phases(o Options) []phase.Phase {
	l := newLive(o)
	return []phase.Phase{
		{Name: "preflight", Limit: soon, Run: l.preflight},
		{Name: "release-payload", Limit: long, Run: l.payload},
		{Name: "render", Limit: longer, Done: l.isRendered, Run: l.render},
		{Name: "static-pods", Limit: short, Run: l.writePods},
		{Name: "api", Limit: long, Run: l.WaitForAPI},
		{Name: "apply-manifests", Limit: longer, Done: l.FileExists(applied), Run: l.apply},
		{Name: "master-ignition", Limit: long, Done: l.hasOriginal, Run: l.fetchOriginal},
		{Name: "log-bundle", Limit: short, Done: l.FileExists(node.LiveLogBundle), Run: l.gather},
		{Name: "stop-control-plane", Limit: short, Run: l.stopControlPlane},
		{Name: "snapshot", Limit: short, Done: l.hasSnapshot, Run: l.save},
		{Name: "stop-etcd", Limit: short, Run: l.stopEtcd},
		{Name: "enrich", Limit: short, Run: l.enrich},
		{Name: "write-disk", Limit: longer, Done: l.isInstalled, Run: l.writeDisk},
		{Name: "reboot", Limit: short, Run: l.restart},
	}
}

const applied = node.LiveDir + "/applied"

type live struct {
	controlplane.Machine
	o Options
}

func newLive(o Options) *live {
	return &live{o: o, Machine: controlplane.Machine{
		Root: o.Root, SettingsFile: node.LiveSettings, Manifests: node.LiveManifests, Rendered: node.Rendered, Host: o.Host, Output: o.Output, Interval: o.Interval,
	}}
}

func (l *live) preflight(ctx context.Context, p *phase.Progress) error {
	s, err := l.Settings()
	if err != nil || l.o.Check == nil {
		return err
	}
	// Address, disk and time may become available a little later. An error that remains at the limit is an input error.
	err = p.Until(ctx, l.Interval, "the machine", func(ctx context.Context) error {
		if err := l.o.Check(ctx, s); err != nil {
			return notYet{err}
		}
		return nil
	})
	var last notYet
	if errors.As(err, &last) {
		return last.error
	}
	return err
}

// notYet hides ErrInput, so that the error is retried.
type notYet struct{ error }

var errProgram = errors.New("the command failed")

// command runs a program. Its output goes to the journal; the error has its last line.
func (l *live) command(ctx context.Context, name string, arguments ...string) error {
	c := exec.CommandContext(ctx, name, arguments...)
	var end tail
	out := io.MultiWriter(l.Output, &end)
	c.Stdout, c.Stderr = out, out // one writer, so that exec copies both in one goroutine
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %q: %w: %w: %s", name, arguments, errProgram, err, end.lastLine())
	}
	return nil
}

type tail struct{ end []byte }

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-tailSize):]
	return len(p), nil
}

func (t *tail) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(t.end)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func (l *live) restart(ctx context.Context, _ *phase.Progress) error {
	return l.command(ctx, l.o.Restart[0], l.o.Restart[1:]...)
}
