package nodemachine

import (
	"context"
	"strings"
)

// Disk runs a shell's command in the root folder of the disk of a machine that is off, and returns what it prints.
func (m *Machine) Disk(ctx context.Context, command string) (string, error) {
	return m.disks(ctx, nil, command)
}

// Wipe makes the disk one that cannot be booted, such as a new one.
func (m *Machine) Wipe(ctx context.Context) error {
	_, err := m.Disk(ctx, "rm -rf boot/bootable boot/ignition")
	return err
}

// Keep keeps a copy of the disk of a machine that is off, for Restore.
func (m *Machine) Keep(ctx context.Context) error {
	if err := m.make(ctx, "volume", "create", "--label", label+"="+m.name, m.kept()); err != nil {
		return err
	}
	_, err := m.disks(ctx, []string{"--volume", m.kept() + ":/kept"}, "cp --archive . /kept/")
	return err
}

// Kept reports whether there is a copy of the disk.
func (m *Machine) Kept(ctx context.Context) (bool, error) {
	found, err := m.engine.Output(ctx, "volume", "ls", "--quiet", "--filter", "name=^"+m.kept()+"$")
	return found != "", err
}

// Restore makes the disk of a machine that is off as it was when the copy was made.
func (m *Machine) Restore(ctx context.Context) error {
	_, err := m.disks(ctx, []string{"--volume", m.kept() + ":/kept:ro"}, "find . -mindepth 1 -delete && cp --archive /kept/. .")
	return err
}

func (m *Machine) kept() string { return m.name + "-kept" }

func (m *Machine) disks(ctx context.Context, more []string, command string) (string, error) {
	image, err := m.engine.Output(ctx, "inspect", "--format", "{{.Image}}", m.name)
	if err != nil {
		return "", err
	}
	arguments := append([]string{"run", "--rm", "--label", label + "=" + m.name, "--network", "none", "--volume", m.disk(), "--workdir", "/sysroot"}, more...)
	out, err := m.engine.Output(ctx, append(arguments, "--entrypoint", "/bin/sh", image, "-euc", command)...)
	return strings.TrimSpace(out), err
}
