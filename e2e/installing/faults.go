package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// InPlaceFaults is bootstrap in place when something goes wrong.
var InPlaceFaults = Method{
	Name: "in-place-faults", Title: "Bootstrap in place, when something goes wrong", command: InPlace.command,
	steps: []step{
		{"config", configFaults},
		{"live", liveFaults},
		{"config-part", partOfConfig},
		{"snapshot", damaged},
		{"certificates", ended},
	},
}

// shortest is the shortest validity of certificates.
const shortest = 5 * time.Minute

// configFaults also makes a config whose certificates end soon.
func configFaults(ctx context.Context, m *Machine) error {
	if err := configInPlace(ctx, m); err != nil {
		return err
	}
	config, err := os.ReadFile(m.site.path("sno/install-config.yaml"))
	if err != nil {
		return fmt.Errorf("read the install config: %w", err)
	}
	if err := m.site.write(map[string]string{"short/install-config.yaml": string(config)}); err != nil {
		return err
	}
	return m.site.run(ctx, "create", "single-node-ignition-config", "--dir", "short", "--profile", "kubernetes", "--kubernetes-version", m.version(),
		"--program", m.program, "--extra", "extra", "--extra-live", "live", "--validity", shortest.String())
}

var (
	errNotSaid   = errors.New("it does not say so")
	errGoesOn    = errors.New("it goes on")
	errReachable = errors.New("the network should be away")
)

// liveFaults boots the live system without a network, which comes back; takes it away again while the control plane starts; and has no room on the disk
// when that is written. The machine goes on by itself each time.
func liveFaults(ctx context.Context, m *Machine) (err error) {
	live, err := m.liveSystem(ctx, liveConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	for _, part := range []struct {
		what string
		do   func(context.Context, *nodemachine.Machine) error
	}{
		{"without a network Ignition says what it cannot reach, and goes on trying", m.unplugged},
		{"while the control plane starts the network may be away", m.away},
		{"without room on the disk the command says so, and what to do; the disk is not bootable", m.noRoom},
		{"with room it goes on, and restarts the machine", m.goesOn},
	} {
		if err := part.do(ctx, live); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", part.what, err), live.Logs(context.WithoutCancel(ctx), m.site.path("logs-live")))
		}
		m.say("  %s", part.what)
	}
	return nil
}

func (m *Machine) unplugged(ctx context.Context, live *nodemachine.Machine) error {
	if err := live.DisconnectNetwork(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := live.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := until(ctx, "Ignition says what it cannot reach", func(ctx context.Context) error {
		said, err := live.Console(ctx)
		if err == nil && !strings.Contains(said, "GET error: Get \""+m.program) {
			err = errNotSaid
		}
		return err //nolint:wrapcheck // until says of what
	}); err != nil {
		return err
	}
	if err := live.ConnectNetwork(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return live.WaitBooted(ctx) //nolint:wrapcheck // it says of what
}

// away pulls the cable. When it is back, the route is too, as a network manager sees to.
func (m *Machine) away(ctx context.Context, live *nodemachine.Machine) error {
	// There is a small disk in the place of the one that is installed.
	if _, err := live.Exec(ctx, "mount", "-t", "tmpfs", "-o", "size=1M", "none", "/disk/boot"); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.phaseRuns(ctx, live, "api"); err != nil {
		return err
	}
	if _, err := live.Exec(ctx, "ip", "link", "set", "dev", "eth0", "down"); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if _, err := live.Exec(ctx, "curl", "--silent", "--max-time", "5", "--output", "/dev/null", m.program); err == nil {
		return errReachable
	}
	_, err := live.Exec(ctx, "sh", "-c", "ip link set dev eth0 up && ip route replace default via "+m.site.gateway)
	return err //nolint:wrapcheck // it says of what
}

// phaseRuns returns when a phase of the live system's command has begun.
func (m *Machine) phaseRuns(ctx context.Context, live *nodemachine.Machine, name string) error {
	return until(ctx, "phase "+name+" has begun", func(ctx context.Context) error {
		s, err := statusOf(ctx, live, "bootstrap-in-place")
		if err != nil {
			return err
		}
		for _, p := range s.Phases {
			if p.Name == name && p.State != "Pending" {
				return nil
			}
		}
		return errNotYet
	})
}

func (m *Machine) noRoom(ctx context.Context, live *nodemachine.Machine) error {
	if err := m.fails(ctx, live, "No space left on device"); err != nil {
		return err
	}
	_, err := live.Exec(ctx, "test", "!", "-e", "/disk/boot/bootable")
	return err //nolint:wrapcheck // it says of what
}

// fails waits until the command of the live system has failed with this in its error, and says what to do.
func (m *Machine) fails(ctx context.Context, live *nodemachine.Machine, with string) error {
	return until(ctx, "the command says: "+with, func(ctx context.Context) error {
		s, err := statusOf(ctx, live, "bootstrap-in-place")
		if err == nil && (!strings.Contains(s.Error, with) || s.Advice == "") {
			err = fmt.Errorf("%w: error %q, advice %q", errNotSaid, s.Error, s.Advice)
		}
		return err
	})
}

func (m *Machine) goesOn(ctx context.Context, live *nodemachine.Machine) error {
	if _, err := live.Exec(ctx, "umount", "/disk/boot"); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	ending, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return live.WaitPoweredOff(ending) //nolint:wrapcheck // it says of what
}

// partOfConfig boots a disk whose image is bootable before the whole config is there, as it is for a moment with the real installer.
func partOfConfig(ctx context.Context, m *Machine) error {
	if _, err := m.node.ExecOnDisk(ctx, "cd boot/ignition && cp --archive config.ign whole && truncate --size=-1000 config.ign"); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	err := m.node.Start(ctx)
	if err == nil {
		return fmt.Errorf("%w: its config is cut off", errDisk)
	}
	const refused = "Ignition failed: config is not valid"
	if said, console := m.node.Console(ctx); console != nil || !strings.Contains(said, refused) {
		return errors.Join(fmt.Errorf("%w: %s", errNotSaid, refused), err, console)
	}
	m.say("  Ignition refuses a config that is cut off, and nothing starts")
	_, err = m.node.ExecOnDisk(ctx, "mv boot/ignition/whole boot/ignition/config.ign")
	return err //nolint:wrapcheck // it says of what
}

// damage changes a byte of etcd's snapshot after Ignition has laid it, and before anybody reads it.
const damage = `mkdir -p etc/systemd/system/etcd-restore.service.d
cat >etc/systemd/system/etcd-restore.service.d/damage.conf <<'EOF_'
[Service]
ExecStartPre=/bin/sh -c 'printf x | dd of=/var/lib/sno-install/etcd-snapshot.db bs=1 seek=20000 conv=notrunc'
EOF_
`

// damaged boots the installed machine, whose snapshot of etcd is damaged: etcd does not start, and with nothing in it least of all.
func damaged(ctx context.Context, m *Machine) error {
	if _, err := m.node.ExecOnDisk(ctx, damage); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	for _, c := range []check{
		{"etcd-restore has failed, and says what to do", `systemctl is-failed --quiet etcd-restore.service && ` +
			`journalctl --boot --unit etcd-restore.service --output cat | grep -q 'its only snapshot is damaged: install the node again'`},
		{"the kubelet does not run", "! systemctl is-active --quiet kubelet.service"},
		{"etcd has no data", "! test -e /var/lib/etcd/member"},
	} {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.say("  %s", c.what)
	}
	return m.node.PowerCut(ctx) //nolint:wrapcheck // it says of what
}

// ended boots a live system when the certificates of its config have ended.
func ended(ctx context.Context, m *Machine) (err error) {
	if err := m.node.WipeDisk(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	const config = "short/bootstrap-in-place-for-live-iso.ign"
	live, err := m.liveSystem(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	made, err := os.Stat(m.site.path(config))
	if err != nil {
		return fmt.Errorf("look at the config: %w", err)
	}
	left := time.Until(made.ModTime().Add(shortest))
	m.say("  the certificates end in %s", left.Round(time.Second))
	if err := elapse(ctx, left); err != nil {
		return err
	}
	if err := live.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.fails(ctx, live, "the certificates of the config have ended"); err != nil {
		return err
	}
	m.say("  the command says so, and what to do")
	// It is not started again: nothing but a person changes that.
	if _, err := live.Exec(ctx, "systemctl", "is-failed", "--quiet", "bootkube.service"); err != nil {
		return fmt.Errorf("%w: bootkube.service: %w", errGoesOn, err)
	}
	after, err := m.diskNow(ctx)
	if err == nil && after != notBootable {
		err = fmt.Errorf("%w: %s", errDisk, after)
	}
	return err
}
