package installing

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// InPlace is bootstrap in place: a live system, the disk that it writes, and the node that boots from it (R-BIP-25, R-BIP-26).
var InPlace = Way{
	Name: "in-place", Title: "Bootstrap in place",
	steps: []step{
		{"config", configInPlace},
		{"live", live},
		{"node", boot},
		{"checks", good},
		{"restart", restart},
	},
	checks: append([]check{
		{"nothing of the installation is left", "test ! -e /etc/systemd/system/post-reboot.service && /opt/check/sno-install check-leftovers"},
		{"what was applied before the restart is there", client + "get configmap site --namespace=default"},
	}, pending()...),
}

// pending returns checks that hostile requests are not approved.
func pending() []check {
	all := make([]check, 0, len(hostile))
	for _, h := range hostile {
		all = append(all, check{h.name + " is pending", `test -z "$(` + client + `get certificatesigningrequest ` + h.name + ` -o jsonpath='{.status.conditions}')"`})
	}
	return all
}

// configInPlace makes the machine and the config of the live system.
func configInPlace(ctx context.Context, m *Machine) error {
	firmware, err := m.site.medium("firmware", "")
	if err != nil {
		return err
	}
	if err := m.create(ctx, firmware); err != nil {
		return err
	}
	return m.site.run(ctx, "create", "single-node-ignition-config", "--dir", "sno", "--profile", "kubernetes", "--kubernetes-version",
		m.version(), "--program", m.program, "--extra", "extra", "--extra-live", "live")
}

// live boots the live system, and returns when it has restarted the machine.
func live(ctx context.Context, m *Machine) (err error) {
	medium, err := m.site.medium("iso", "sno/bootstrap-in-place-for-live-iso.ign")
	if err != nil {
		return err
	}
	config := m.Config
	config.Name, config.Network, config.Medium, config.Installs = m.Config.Name+"-live", m.Config.Name, medium, m.Config.Name
	live, err := nodemachine.Create(ctx, config)
	if err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	defer func() { err = errors.Join(err, live.Delete()) }()
	if err := live.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	ending, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := live.Off(ending); err != nil {
		logs := filepath.Join(m.Folder, "logs-live")
		return errors.Join(fmt.Errorf("the live system does not restart the machine; its logs are in %s: %w", logs, err),
			live.Logs(context.WithoutCancel(ctx), logs))
	}
	return nil
}
