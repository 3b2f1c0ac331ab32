// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// InPlace is bootstrap in place: a live system, the disk that it writes, and the node that boots from it (R-BIP-25,
// R-BIP-26).
var InPlace = Method{
	Name: "in-place", Title: "Bootstrap in place", command: "post-reboot",
	steps: []step{
		{"config", configWithOperators},
		{"live", live},
		{"node", bootInstalled},
		{"checks", passFirstChecks},
		{"restart", restart},
		{"modules", modules},
		{"worker", worker},
		{"router", router},
	},
	checks: slices.Concat(installed, takenOver(), pending()),
}

var installed = []check{
	{"the installation has left nothing behind", "test ! -e /etc/systemd/system/post-reboot.service && /opt/check/sno-install check-leftovers"},
	{"the objects from before the restart exist", client + "get configmap site --namespace=default"},
}

func pending() []check {
	all := make([]check, 0, len(hostile))
	for _, h := range hostile {
		all = append(all, check{h.name + " is pending", `test -z "$(` + client + `get certificatesigningrequest ` + h.name + ` -o jsonpath='{.status.conditions}')"`})
	}
	return all
}

func configInPlace(ctx context.Context, m *Machine) error { return m.configInPlace(ctx) }

func configWithOperators(ctx context.Context, m *Machine) error {
	return m.configInPlace(ctx, func(ctx context.Context) error {
		return errors.Join(m.site.machineConfigServer(ctx), m.site.payload(ctx, m.Version))
	})
}

func (m *Machine) configInPlace(ctx context.Context, more ...func(context.Context) error) error {
	firmware, err := m.site.medium("firmware", "")
	if err != nil {
		return err
	}
	if err := m.create(ctx, firmware); err != nil {
		return err
	}
	if err := m.node.WipeDisk(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	for _, lay := range more {
		if err := lay(ctx); err != nil {
			return err
		}
	}
	return m.site.run(ctx, "create", "single-node-ignition-config", "--dir", "sno", "--profile", "kubernetes", "--kubernetes-version",
		m.version(), "--program", m.program, "--extra", "extra", "--extra-live", "live")
}

func bootInstalled(ctx context.Context, m *Machine) error {
	version, err := os.ReadFile(m.site.path("version"))
	if err != nil {
		return fmt.Errorf("read the version from the live system: %w", err)
	}
	err = m.boot(ctx, func(booting context.Context) error {
		return m.node.Put(booting, nodemachine.File{Path: versionFile, Mode: 0o644, Content: version}) //nolint:wrapcheck // names the object
	}, func(booting context.Context) error { return m.takeOver(booting, ctx) })
	if err != nil {
		return err
	}
	m.report.Restarts = append(m.report.Restarts, m.api.reset())
	made, err := os.Stat(m.site.path(liveConfig))
	if err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	enriched, err := m.number(ctx, "stat --format=%s /boot/ignition/config.ign")
	m.report.Configs = []int{int(made.Size()), enriched}
	return err
}

const liveConfig = "sno/bootstrap-in-place-for-live-iso.ign"

// liveSystem makes a machine that boots the live medium. Its system is in memory, so each boot needs a new one.
func (m *Machine) liveSystem(ctx context.Context, config string) (*nodemachine.Machine, error) {
	medium, err := m.site.medium("iso", config)
	if err != nil {
		return nil, err
	}
	machine := m.Config
	machine.Name, machine.Network, machine.Medium, machine.InstallTarget = m.Config.Name+"-live", m.Config.Name, medium, m.Config.Name
	return nodemachine.Create(ctx, machine) //nolint:wrapcheck // names the object
}

// live boots the live system, and returns when that has restarted the machine.
func live(ctx context.Context, m *Machine) (err error) {
	live, err := m.liveSystem(ctx, liveConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	began := time.Now()
	defer func() { m.uptime = time.Since(began) }()
	if err := live.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	m.api.at(live.Address())
	m.journal(ctx, live)
	ending, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	followed := make(chan error, 1)
	go func() { followed <- m.follow(ending, live, "bootstrap-in-place") }()
	seen := make(chan error, 1)
	go func() { seen <- m.seen(ending, live) }()
	err = live.WaitPoweredOff(ending)
	cancel()
	// The machine is off before the command has ended.
	<-followed
	if seen := <-seen; err == nil {
		err = seen
	}
	if err != nil {
		logs := filepath.Join(m.Folder, "logs-live")
		return errors.Join(fmt.Errorf("the live system does not restart the machine; its logs are in %s: %w", logs, err),
			live.Logs(context.WithoutCancel(ctx), logs))
	}
	return nil
}
