package installing

import "context"

// AllInOne is a machine whose image boots with the config of an all-in-one node.
var AllInOne = Way{
	Name: "all-in-one", Title: "All in one", command: "aiokube",
	steps: []step{
		{"config", configAllInOne},
		{"node", boot},
		{"checks", good},
		{"restart", restart},
	},
	checks: append([]check{
		{"the installation has ended", "test -e /var/lib/sno/installed && ! systemctl is-active --quiet aiokube.service"},
		{"certificates are renewed in time", "systemctl is-active --quiet sno-rotate.timer"},
	}, pending()...),
}

// configAllInOne makes the config when the network is known, and puts it on the medium before the machine starts.
func configAllInOne(ctx context.Context, m *Machine) error {
	medium, err := m.site.medium("medium", "")
	if err != nil {
		return err
	}
	if err := m.create(ctx, medium); err != nil {
		return err
	}
	if err := m.site.run(ctx, "create", "aio-ignition", "--dir", "sno", "--kubernetes-version", m.version(), "--program", m.program, "--extra", "extra"); err != nil {
		return err
	}
	_, err = m.site.medium("medium", "sno/aio.ign")
	return err
}
