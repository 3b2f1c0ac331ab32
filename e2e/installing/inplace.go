package installing

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// InPlace is bootstrap in place: a live system, the disk that it writes, and the node that boots from it (R-BIP-25, R-BIP-26).
var InPlace = Way{Name: "bootstrap in place", Install: inPlace, checks: append([]check{
	{"nothing of the installation is left", "test ! -e /etc/systemd/system/post-reboot.service && /opt/check/sno-install check-leftovers"},
	{"what was applied before the restart is there", client + "get configmap site --namespace=default"},
}, pending()...)}

// pending returns checks that hostile requests are not approved.
func pending() []check {
	all := make([]check, 0, len(hostile))
	for _, h := range hostile {
		all = append(all, check{h.name + " is pending", `test -z "$(` + client + `get certificatesigningrequest ` + h.name + ` -o jsonpath='{.status.conditions}')"`})
	}
	return all
}

// inPlace returns when the installation has ended on the node.
func inPlace(ctx context.Context, m *Machine) error {
	firmware, err := m.site.medium("firmware", "")
	if err != nil {
		return err
	}
	if err := m.create(ctx, firmware); err != nil {
		return err
	}
	if err := m.site.run(ctx, "create", "single-node-ignition-config", "--dir", "sno", "--profile", "kubernetes", "--kubernetes-version",
		m.version(), "--program", m.program, "--extra", "extra", "--extra-live", "live"); err != nil {
		return err
	}
	medium, err := m.site.medium("iso", "sno/bootstrap-in-place-for-live-iso.ign")
	if err != nil {
		return err
	}
	if err := m.live(ctx, medium); err != nil {
		return err
	}
	return m.start(ctx)
}

// live boots the live system, and returns when it has restarted the machine.
func (m *Machine) live(ctx context.Context, medium string) (err error) {
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
