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
	// Root is the machine's root folder, "/" in production.
	Root string
	// Host returns what the machine knows of itself.
	Host func() (controlplane.Host, error)
	// Check reports what keeps the machine from being installed; nil for nothing.
	Check func(ctx context.Context, s *node.Settings) error
	// Installer writes a system image and a config to a disk. It is called as coreos-installer is: "install --ignition-file FILE
	// [ARGUMENT...] DISK".
	Installer string
	// Podman pulls the release payload and reads it, for profile openshift.
	Podman string
	// Restart is the command that restarts the machine.
	Restart []string
	// Program is the path of sno-install, which the installed node gets, unless its image has it.
	Program string
	// Output gets what these programs print.
	Output io.Writer
	// Endpoints are those of the control plane.
	Endpoints Endpoints
	// Interval is between two tries of what is waited for.
	Interval time.Duration
}

// Endpoints are where the control plane listens.
type Endpoints struct {
	// Etcd is a URL, and EtcdPort its HOST:PORT.
	Etcd, EtcdPort string
	// Ports are those of kube-apiserver, kube-controller-manager and kube-scheduler, as HOST:PORT.
	Ports []string
}

// Local are the endpoints of static pods on the machine itself.
func Local() Endpoints {
	return Endpoints{Etcd: "https://localhost:2379", EtcdPort: "localhost:2379", Ports: []string{"localhost:6443", "localhost:10257", "localhost:10259"}}
}

// Limits of the phases. They are for what does not end, not for what is slow.
const (
	soon   = 2 * time.Minute
	short  = 10 * time.Minute
	long   = 30 * time.Minute
	longer = time.Hour
)

// Phases returns what bootstraps the machine in place, in order (R-BIP-1, R-BIP-6, R-BIP-7, R-BIP-12, U-INS-5, U-INS-6):
//
//	preflight            the machine can be installed
//	release-payload      profile openshift: the operators' manifests are read from the release
//	render               the static pods are rendered
//	static-pods          and laid, for the kubelet of the live system
//	api                  the API server is ready
//	apply-manifests      every manifest is applied
//	master-ignition      the master config is fetched
//	log-bundle           the logs of this phase are gathered
//	stop-control-plane   nothing writes to etcd any more
//	snapshot             its data is saved
//	stop-etcd            and it stops
//	enrich               the master config gets the control plane, the snapshot and what starts them
//	write-disk           the image and the config are written
//	reboot               the machine restarts into it
func Phases(o Options) []phase.Phase {
	l := newLive(o)
	return []phase.Phase{
		{Name: "preflight", Limit: soon, Run: l.preflight},
		{Name: "release-payload", Limit: long, Run: l.payload},
		{Name: "render", Limit: short, Done: l.IsRendered, Run: l.render},
		{Name: "static-pods", Limit: short, Run: l.layPods},
		{Name: "api", Limit: long, Run: l.WaitForAPI},
		{Name: "apply-manifests", Limit: longer, Done: l.Has(applied), Run: l.apply},
		{Name: "master-ignition", Limit: long, Done: l.hasOriginal, Run: l.fetchOriginal},
		{Name: "log-bundle", Limit: short, Done: l.Has(node.LiveLogBundle), Run: l.gather},
		{Name: "stop-control-plane", Limit: short, Run: l.stopControlPlane},
		{Name: "snapshot", Limit: short, Done: l.hasSnapshot, Run: l.save},
		{Name: "stop-etcd", Limit: short, Run: l.stopEtcd},
		{Name: "enrich", Limit: short, Run: l.enrich},
		{Name: "write-disk", Limit: longer, Done: l.isInstalled, Run: l.writeDisk},
		{Name: "reboot", Limit: short, Run: l.restart},
	}
}

// applied is there once every manifest is applied.
const applied = node.LiveDir + "/applied"

// live is the live system.
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
	// An address, a disk and the time may come a little later than this phase. What stays needs a person.
	err = p.Until(ctx, l.Interval, "the machine", func(ctx context.Context) error {
		if err := l.o.Check(ctx, s); err != nil {
			return notYet{err}
		}
		return nil
	})
	var stays notYet
	if errors.As(err, &stays) {
		return stays.error
	}
	return err
}

// notYet is an error that is waited for, also if it is ErrInput.
type notYet struct{ error }

var errProgram = errors.New("the command failed")

// command runs a program. Its output goes to the journal, and its last line into the error too.
func (l *live) command(ctx context.Context, name string, arguments ...string) error {
	c := exec.CommandContext(ctx, name, arguments...)
	var said tail
	out := io.MultiWriter(l.Output, &said)
	c.Stdout, c.Stderr = out, out // written to by one
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %q: %w: %w: %s", name, arguments, errProgram, err, said.line())
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct{ end []byte }

// tailSize is more than a line of a program has.
const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-tailSize):]
	return len(p), nil
}

// line is the last one that has something in it.
func (t *tail) line() string {
	lines := strings.Split(strings.TrimSpace(string(t.end)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func (l *live) restart(ctx context.Context, _ *phase.Progress) error {
	return l.command(ctx, l.o.Restart[0], l.o.Restart[1:]...)
}
