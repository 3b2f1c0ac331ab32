// SPDX-License-Identifier: Apache-2.0

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

// InPlaceFaults is bootstrap in place with faults.
var InPlaceFaults = Method{
	Name: "in-place-faults", Title: "Bootstrap in place, with faults", command: InPlace.command,
	steps: []step{
		{"config", configFaults},
		{"live", liveFaults},
		{"config-part", partOfConfig},
		{"snapshot", damaged},
		{"certificates", ended},
	},
}

// minValidity is the shortest validity of certificates that sno-install accepts.
const minValidity = 5 * time.Minute

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
		"--program", m.program, "--extra", "extra", "--extra-live", "live", "--validity", minValidity.String())
}

var (
	errNotReported = errors.New("the expected message is missing")
	errRetried     = errors.New("it is retried")
	errReachable   = errors.New("the network is still up")
)

// liveFaults boots the live system without a network, takes its network down while the control plane starts, and fills
// its disk before the config is written. Each time the machine continues by itself when the fault is removed.
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
		{"without a network Ignition prints the URL that it cannot reach, and retries", m.withoutNetwork},
		{"the network may be down while the control plane starts", m.networkDown},
		{"on a full disk the command reports the error and an advice; the disk is not bootable", m.diskFull},
		{"once the disk has room, the command continues and restarts the machine", m.diskEmptied},
	} {
		if err := part.do(ctx, live); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", part.what, err), live.Logs(context.WithoutCancel(ctx), m.site.path("logs-live")))
		}
		m.logf("  %s", part.what)
	}
	return nil
}

func (m *Machine) withoutNetwork(ctx context.Context, live *nodemachine.Machine) error {
	if err := live.DisconnectNetwork(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := live.PowerOn(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := until(ctx, "Ignition prints the URL that it cannot reach", func(ctx context.Context) error {
		output, err := live.Console(ctx)
		if err == nil && !strings.Contains(output, "GET error: Get \""+m.program) {
			err = errNotReported
		}
		return err //nolint:wrapcheck // until wraps it
	}); err != nil {
		return err
	}
	if err := live.ConnectNetwork(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return live.WaitBooted(ctx) //nolint:wrapcheck // names the object
}

// networkDown takes the link down. It restores the default route with the link, as a network manager does.
func (m *Machine) networkDown(ctx context.Context, live *nodemachine.Machine) error {
	// A small file system stands in for the full disk.
	if _, err := live.Exec(ctx, "mount", "-t", "tmpfs", "-o", "size=1M", "none", "/disk/boot"); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.phaseRuns(ctx, live, "api"); err != nil {
		return err
	}
	if _, err := live.Exec(ctx, "ip", "link", "set", "dev", "eth0", "down"); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if _, err := live.Exec(ctx, "curl", "--silent", "--max-time", "5", "--output", "/dev/null", m.program); err == nil {
		return errReachable
	}
	_, err := live.Exec(ctx, "sh", "-c", "ip link set dev eth0 up && ip route replace default via "+m.site.gateway)
	return err //nolint:wrapcheck // names the object
}

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

func (m *Machine) diskFull(ctx context.Context, live *nodemachine.Machine) error {
	if err := m.fails(ctx, live, "No space left on device"); err != nil {
		return err
	}
	_, err := live.Exec(ctx, "test", "!", "-e", "/disk/boot/bootable")
	return err //nolint:wrapcheck // names the object
}

// fails waits until the command of the live system reports this error, and an advice.
func (m *Machine) fails(ctx context.Context, live *nodemachine.Machine, with string) error {
	return until(ctx, "the command reports: "+with, func(ctx context.Context) error {
		s, err := statusOf(ctx, live, "bootstrap-in-place")
		if err == nil && (!strings.Contains(s.Error, with) || s.Advice == "") {
			err = fmt.Errorf("%w: error %q, advice %q", errNotReported, s.Error, s.Advice)
		}
		return err
	})
}

func (m *Machine) diskEmptied(ctx context.Context, live *nodemachine.Machine) error {
	if _, err := live.Exec(ctx, "umount", "/disk/boot"); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	ending, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return live.WaitPoweredOff(ending) //nolint:wrapcheck // names the object
}

// partOfConfig boots a disk that is bootable before the config is complete, a state that the real installer passes
// through.
func partOfConfig(ctx context.Context, m *Machine) error {
	if _, err := m.node.ExecOnDisk(ctx, "cd boot/ignition && cp --archive config.ign whole && truncate --size=-1000 config.ign"); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	err := m.node.Start(ctx)
	if err == nil {
		return fmt.Errorf("%w: its config is truncated", errDisk)
	}
	const refused = "Ignition failed: config is not valid"
	if output, console := m.node.Console(ctx); console != nil || !strings.Contains(output, refused) {
		return errors.Join(fmt.Errorf("%w: %s", errNotReported, refused), err, console)
	}
	m.logf("  Ignition refuses a truncated config, and nothing starts")
	_, err = m.node.ExecOnDisk(ctx, "mv boot/ignition/whole boot/ignition/config.ign")
	return err //nolint:wrapcheck // names the object
}

// damage changes a byte of etcd's snapshot after Ignition has written it and before etcd-restore reads it.
const damage = `mkdir -p etc/systemd/system/etcd-restore.service.d
cat >etc/systemd/system/etcd-restore.service.d/damage.conf <<'EOF_'
[Service]
ExecStartPre=/bin/sh -c 'printf x | dd of=/var/lib/sno-install/etcd-snapshot.db bs=1 seek=20000 conv=notrunc'
EOF_
`

// damaged boots the installed machine with a damaged snapshot. etcd must not start, in particular not with an empty
// database.
func damaged(ctx context.Context, m *Machine) error {
	if _, err := m.node.ExecOnDisk(ctx, damage); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	for _, c := range []check{
		{"etcd-restore has failed and prints an advice", `systemctl is-failed --quiet etcd-restore.service && ` +
			`journalctl --boot --unit etcd-restore.service --output cat | grep -q 'its only snapshot is damaged: install the node again'`},
		{"the kubelet does not run", "! systemctl is-active --quiet kubelet.service"},
		{"etcd has no data", "! test -e /var/lib/etcd/member"},
	} {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.logf("  %s", c.what)
	}
	return m.node.PowerCut(ctx) //nolint:wrapcheck // names the object
}

func ended(ctx context.Context, m *Machine) (err error) {
	if err := m.node.WipeDisk(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	const config = "short/bootstrap-in-place-for-live-iso.ign"
	live, err := m.liveSystem(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	made, err := os.Stat(m.site.path(config))
	if err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	left := time.Until(made.ModTime().Add(minValidity))
	m.logf("  the certificates expire in %s", left.Round(time.Second))
	if err := elapse(ctx, left); err != nil {
		return err
	}
	if err := live.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.fails(ctx, live, "the certificates of the config have ended"); err != nil {
		return err
	}
	m.logf("  the command reports the error and an advice")
	// The unit does not restart, because only a person can change that.
	if _, err := live.Exec(ctx, "systemctl", "is-failed", "--quiet", "bootkube.service"); err != nil {
		return fmt.Errorf("%w: bootkube.service: %w", errRetried, err)
	}
	after, err := m.diskNow(ctx)
	if err == nil && after != notBootable {
		err = fmt.Errorf("%w: %s", errDisk, after)
	}
	return err
}
