// SPDX-License-Identifier: Apache-2.0

package nodemachine

import (
	"context"
	"strings"
)

// ExecOnDisk runs a shell command in the root folder of the disk of a machine that is off, and returns its output.
func (m *Machine) ExecOnDisk(ctx context.Context, command string) (string, error) {
	return m.disks(ctx, nil, command)
}

// WipeDisk makes the disk unbootable, as a new one is.
func (m *Machine) WipeDisk(ctx context.Context) error {
	_, err := m.ExecOnDisk(ctx, "rm -rf boot/bootable boot/ignition")
	return err
}

// SaveDisk copies the disk of a machine that is off, for RestoreDisk.
func (m *Machine) SaveDisk(ctx context.Context) error {
	if err := m.make(ctx, "volume", "create", "--label", label+"="+m.name, m.kept()); err != nil {
		return err
	}
	_, err := m.disks(ctx, []string{"--volume", m.kept() + ":/kept"}, "cp --archive . /kept/")
	return err
}

// RestoreDisk restores the disk of a machine that is off from its copy.
func (m *Machine) RestoreDisk(ctx context.Context) error {
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
