package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

	site *site
	node *nodemachine.Machine
	// program is the URL of sno-install, as long as Up runs.
	program string
}

// Way is a way to install a machine.
type Way struct {
	Name    string
	Install func(context.Context, *Machine) error
	// checks are besides those that every node has to pass.
	checks []check
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

// Up installs the machine, looks at it, restarts it and looks again.
func (m *Machine) Up(ctx context.Context, w Way) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if m.site, err = newSite(ctx, m.Folder, m.Config.Progress); err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil && m.node != nil {
			err = errors.Join(err, m.node.Logs(ctx, filepath.Join(m.Folder, "logs")))
		}
	}()
	if err := w.Install(ctx, m); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	for _, when := range []string{"installed", "restarted"} {
		for _, c := range append(everywhere, w.checks...) {
			if err := m.wait(ctx, c); err != nil {
				return fmt.Errorf("%s, %s: %w", w.Name, when, err)
			}
			m.say("%s: %s", when, c.what)
		}
		if when == "installed" {
			if err := m.node.Reboot(ctx); err != nil {
				return err //nolint:wrapcheck // it says of what
			}
		}
	}
	return nil
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
	if m.site.network, m.site.gateway, err = m.node.Network(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if m.program, err = m.site.serve(ctx); err != nil {
		return err
	}
	return m.site.lay()
}

// start starts the installed machine, with a copy of sno-install that the installation does not know, and makes hostile requests as soon as
// there is an API server.
func (m *Machine) start(ctx context.Context) error {
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
