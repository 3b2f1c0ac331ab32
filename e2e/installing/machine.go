package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

const (
	poll = 500 * time.Millisecond
	// patience is for one step, on a machine that is busy.
	patience = 10 * time.Minute
)

// Machine is installed and looked at.
type Machine struct {
	// Config has its name.
	Config nodemachine.Config
	// Folder is for what a person has, and logs. It is emptied.
	Folder string
	// Version is that of Kubernetes, such as v1.36.3.
	Version string

	site   *site
	node   *nodemachine.Machine
	checks []check
	// program is the URL of sno-install, as long as Up runs.
	program string
}

// Way is a way to install a machine, and what is done with it then.
type Way struct {
	// Name is for flags, and Title for a person.
	Name, Title string

	steps []step
	// checks are besides those that every node has to pass.
	checks []check
}

// step is a part of a way. When it returns, the next one can begin.
type step struct {
	name string
	do   func(context.Context, *Machine) error
}

// Steps returns the names of the way's steps, in order.
func (w Way) Steps() []string {
	names := make([]string, len(w.steps))
	for i, s := range w.steps {
		names[i] = s.name
	}
	return names
}

// Took is how long a step took.
type Took struct {
	Step string
	Time time.Duration
}

// check is a command on the node that succeeds in the end.
type check struct{ what, command string }

// everywhere holds on every installed node, also after it has been restarted (R-AIO-2, R-AIO-6).
var everywhere = []check{
	{"the node is Ready and schedulable", client + `get node ` + hostname +
		` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}/{.spec.unschedulable}/{.spec.taints}' | grep -qx True//`},
	{"four static pods are Ready", `test "$(` + client + `get pods --all-namespaces -l revision=1 ` +
		`-o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{" "}{end}')" = "True True True True "`},
	{"three pods of a Deployment run", client + `create deployment site --image=registry.k8s.io/pause:3.10 --replicas=3 2>/dev/null; ` +
		client + `rollout status deployment/site --timeout=5s`},
	{"the kubelet serves logs", client + `logs --namespace=openshift-etcd etcd-` + hostname + ` --tail=1`},
	{"nothing has failed but what the image is known for", `! systemctl list-units --failed --plain --no-legend | grep -v '^containerd-fuse-overlayfs'`},
}

// Up goes through a way, from the start or from a step of it: then the machine and the folder are there from before. It returns how long the steps took.
func (m *Machine) Up(ctx context.Context, w Way, from string) (all []Took, err error) {
	first := slices.Index(w.Steps(), from)
	if from != "" && first < 0 {
		return nil, fmt.Errorf("%w: %s has %s, not %q", errNoStep, w.Name, strings.Join(w.Steps(), ", "), from)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.checks = w.checks
	if m.site, err = newSite(ctx, m.Folder, m.Config.Progress); err != nil {
		return nil, err
	}
	if first > 0 {
		err = m.open(ctx)
	} else {
		first, err = 0, m.site.clear()
	}
	if err != nil {
		return nil, err
	}
	for i, s := range w.steps[first:] {
		m.say("step %d of %d: %s", first+i+1, len(w.steps), s.name)
		began := time.Now()
		if err := s.do(ctx, m); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			if ctx.Err() == nil && m.node != nil {
				err = errors.Join(err, m.node.Logs(ctx, filepath.Join(m.Folder, "logs")))
			}
			return all, err
		}
		all = append(all, Took{s.name, time.Since(began)})
	}
	return all, nil
}

var errNoStep = errors.New("there is no such step")

// good passes the checks.
func good(ctx context.Context, m *Machine) error {
	for _, c := range slices.Concat(everywhere, m.checks) {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.say("  %s", c.what)
	}
	return nil
}

// restart restarts the machine, and passes the checks again.
func restart(ctx context.Context, m *Machine) error {
	if err := m.node.Reboot(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return good(ctx, m)
}

// Remove removes the machine.
func (m *Machine) Remove() error {
	if m.node == nil {
		return nil
	}
	return m.node.Delete() //nolint:wrapcheck // it says of what
}

// create makes the machine with a medium, lays what a person has for its network, and serves sno-install there.
func (m *Machine) create(ctx context.Context, medium string) error {
	config := m.Config
	config.Medium = medium
	var err error
	if m.node, err = nodemachine.Create(ctx, config); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	return m.site.lay()
}

// open finds the machine that was made before.
func (m *Machine) open(ctx context.Context) error {
	var err error
	if m.node, err = nodemachine.Open(ctx, m.Config); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return m.connect(ctx)
}

// connect learns the machine's network, and serves sno-install there.
func (m *Machine) connect(ctx context.Context) error {
	var err error
	if m.site.network, m.site.gateway, err = m.node.Network(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	m.program, err = m.site.serve(ctx)
	return err
}

// boot boots the installed machine, with a copy of sno-install that the installation does not know, and makes hostile requests as soon as
// there is an API server.
func boot(ctx context.Context, m *Machine) error {
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	content, err := os.ReadFile(m.site.install)
	if err != nil {
		return fmt.Errorf("read sno-install: %w", err)
	}
	requests, err := hostileRequests()
	if err != nil {
		return err
	}
	if err := m.node.Put(ctx, nodemachine.File{Path: "opt/check/sno-install", Mode: 0o755, Content: content},
		nodemachine.File{Path: "opt/check/hostile.yaml", Mode: 0o600, Content: []byte(requests)}); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return m.wait(ctx, ask)
}

// wait waits until a check succeeds.
func (m *Machine) wait(ctx context.Context, c check) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		_, err := m.node.Exec(ctx, "sh", "-c", c.command)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %w", c.what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

func (m *Machine) say(format string, args ...any) {
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(m.Config.Progress, "        "+format+"\n", args...)
}

// version returns that of Kubernetes as sno-install takes it.
func (m *Machine) version() string { return strings.TrimPrefix(m.Version, "v") }
