// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/allinone"
	"github.com/solonode/sno/install/bootstrap"
	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/kubelet"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/postreboot"
	"github.com/solonode/sno/install/preflight"
	"github.com/solonode/sno/install/snapshot"
)

const interval = 500 * time.Millisecond

const bootstrapLong = `Install this machine from the live system that runs on it: start a temporary control plane, apply all manifests, save its data and logs,
add them to the master config, write the disk and restart. --installer is called with coreos-installer's arguments:
  install --ignition-file FILE [ARGUMENT...] DISK`

const postRebootLong = `Finish the installation after the restart: approve the two certificate requests of this node and no others, wait until the operators run
the control plane, and remove what only the installation needs, including this program.`

type onMachine struct{ root, status, listen string }

func (o *onMachine) bind(c *cobra.Command) *cobra.Command {
	c.Args = noArguments
	c.Flags().StringVar(&o.root, "root", "/", "root folder of the machine")
	c.Flags().StringVar(&o.status, "status-dir", "/"+node.StatusDir, "folder of the status file")
	return c
}

func newBootstrap(errs io.Writer) *cobra.Command {
	var m onMachine
	o := bootstrap.Options{Podman: "podman", Output: errs, Endpoints: bootstrap.LocalEndpoints(), Interval: interval, Check: checkMachine}
	var restart string
	c := m.bind(&cobra.Command{
		Use: "bootstrap-in-place", Short: "Install this machine from the live system on it", Long: bootstrapLong,
		RunE: func(c *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			o.Root, o.Program, o.Restart = m.root, program, strings.Fields(restart)
			if len(o.Restart) == 0 {
				return fmt.Errorf("--restart is needed; %w", errUsage)
			}
			o.Host = func() (controlplane.Host, error) { return controlplane.ReadHost(m.root) }
			return phases(c, m.status, bootstrap.Phases(o), errs)
		},
	})
	c.Flags().StringVar(&o.Installer, "installer", "coreos-installer", "program that writes the disk")
	c.Flags().StringVar(&restart, "restart", "systemctl reboot", "command that restarts the machine")
	return c
}

func newNodeImage(errs io.Writer) *cobra.Command {
	var m onMachine
	return m.bind(&cobra.Command{
		Use: "add-node-image", Short: "Add kubelet and container runtime of a release to this live system",
		Long: "Add kubelet, container runtime and oc of the release to this live system, in memory, if its image does not have them.",
		RunE: func(c *cobra.Command, _ []string) error {
			return phases(c, m.status, bootstrap.NodeImagePhases(bootstrap.Options{Root: m.root, Podman: "podman", Output: errs, Interval: interval}), errs)
		},
	})
}

func checkMachine(ctx context.Context, s *node.Settings) error {
	in, err := settingsInput(s)
	if err != nil {
		return err
	}
	in.Host, in.Checks = true, []string{preflight.Address, preflight.Disk, preflight.Clock}
	if in.Runtime != nil {
		in.Checks = append(in.Checks, preflight.Image)
	}
	return preflight.Failed(preflight.Check(ctx, in)) //nolint:wrapcheck // it has advice
}

// checkImage checks what an all-in-one node's image must have.
func checkImage(root string) func(context.Context, *node.Settings) error {
	return func(ctx context.Context, s *node.Settings) error {
		r, err := imageRuntime(s)
		if err != nil {
			return err
		}
		return preflight.Failed(preflight.Check(ctx, preflight.Input{Host: true, Checks: []string{preflight.Image}, Runtime: r, Root: root})) //nolint:wrapcheck // it has advice
	}
}

// imageRuntime returns the runtime that the image has to bring; nil if a release adds it.
func imageRuntime(s *node.Settings) (*node.Runtime, error) {
	if s.Profile == string(inputs.OpenShift) {
		return nil, nil //nolint:nilnil // nothing to bring
	}
	r, err := s.ContainerRuntime()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	return &r, nil
}

func settingsInput(s *node.Settings) (preflight.Input, error) {
	created, err := s.CreatedAt()
	if err != nil {
		return preflight.Input{}, fmt.Errorf("%w: %w", err, phase.ErrInput)
	}
	r, err := imageRuntime(s)
	return preflight.Input{
		Domain: s.Domain(), Name: s.Name, Addresses: s.Addresses, MachineNetworks: s.MachineNetworks, Disk: s.InstallationDisk, Created: created, Runtime: r,
	}, err
}

func newPostReboot(errs io.Writer) *cobra.Command {
	var m onMachine
	return m.bind(&cobra.Command{
		Use: "post-reboot", Short: "Finish the installation after the restart", Long: postRebootLong,
		RunE: func(c *cobra.Command, _ []string) error {
			defer m.serve(c.Context(), errs, node.BootstrapSettings, node.BootstrapStatus, node.PostRebootStatus)()
			return phases(c, m.status, postreboot.Phases(postreboot.Options{Root: m.root, Systemctl: systemctl(errs), Interval: interval, Now: time.Now}), errs)
		},
	})
}

func systemctl(output io.Writer) func(context.Context, ...string) error {
	return func(ctx context.Context, arguments ...string) error {
		c := exec.CommandContext(ctx, "systemctl", arguments...)
		c.Stdout, c.Stderr = output, output
		if err := c.Run(); err != nil {
			return fmt.Errorf("systemctl %q: %w", arguments, err)
		}
		return nil
	}
}

func newAllInOneNode(errs io.Writer) *cobra.Command {
	var m onMachine
	return m.bind(&cobra.Command{
		Use: "aiokube", Short: "Make this machine a cluster of its own", Long: "Start the control plane of an all-in-one node, and join its kubelet.",
		RunE: func(c *cobra.Command, _ []string) error {
			defer m.serve(c.Context(), errs, node.AllInOneSettings, node.AllInOneStatus)()
			return phases(c, m.status, allinone.Phases(m.allInOne(errs), checkImage(m.root)), errs)
		},
	})
}

func newRestore(out, errs io.Writer) *cobra.Command {
	var m onMachine
	return m.bind(&cobra.Command{
		Use: "restore-etcd", Short: "Restore the node's etcd from the snapshot of the bootstrap phase",
		Long: "Restore the node's etcd from the snapshot of the bootstrap phase, before the kubelet starts it. Existing data is not changed. Without\n" +
			"data and without a snapshot the command fails, so that no empty etcd starts: it would be another cluster.",
		RunE: func(c *cobra.Command, _ []string) error {
			err := phases(c, m.status, []phase.Phase{{
				Name: "restore-etcd", Limit: 10 * time.Minute,
				Done: func(context.Context) (bool, error) { return snapshot.HasMember(filepath.Join(m.root, node.EtcdData)) },
				Run: func(ctx context.Context, _ *phase.Progress) error {
					err := bootstrap.Restore(ctx, m.root)
					if errors.Is(err, bootstrap.ErrNoData) || errors.Is(err, snapshot.ErrCorrupt) {
						// A retry would not help; a person has to act.
						err = fmt.Errorf("%w; %w", err, phase.ErrInput)
					}
					return err //nolint:wrapcheck // it names the file
				},
			}}, errs)
			if err == nil {
				fmt.Fprintln(out, "etcd has data")
			}
			return err
		},
	})
}

func newRemoveUnformed(out, errs io.Writer) *cobra.Command {
	var m onMachine
	return m.bind(&cobra.Command{
		Use: "remove-unformed-etcd", Short: "Remove the data of an etcd that was killed before it committed anything",
		Long: "Remove the data of an etcd that was killed before it committed anything, before the kubelet starts it again: it would never elect a leader.\n" +
			"An etcd that has committed an entry is not changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			return phases(c, m.status, []phase.Phase{{
				Name: "remove-unformed-etcd", Limit: time.Minute,
				Run: func(context.Context, *phase.Progress) error {
					removed, err := snapshot.RemoveUnformed(filepath.Join(m.root, node.EtcdData))
					if removed {
						fmt.Fprintln(out, "removed the data of an etcd that had committed nothing; etcd starts with empty data")
					}
					return err //nolint:wrapcheck // it names the folder
				},
			}}, errs)
		},
	})
}

func newRotate(errs io.Writer) *cobra.Command {
	var m onMachine
	var before, clockIsRight bool
	c := m.bind(&cobra.Command{
		Use: "rotate", Short: "Renew the certificates of an all-in-one node that are due",
		Long: "Renew the certificates of an all-in-one node after 80 % of their validity, also those that have ended.",
		RunE: func(c *cobra.Command, _ []string) error {
			machine := m.allInOne(errs)
			machine.ClockIsRight = clockIsRight
			if before {
				return phases(c, m.status, allinone.RotateBeforeKubelet(machine), errs)
			}
			return phases(c, m.status, allinone.Rotate(machine, allinone.Kubelet{HealthURL: kubelet.HealthURL, PodTimeout: 30 * time.Second}), errs)
		},
	})
	c.Flags().BoolVar(&clockIsRight, "clock-is-right", false, "renew certificates that are not valid yet; without the flag only if a time server sets the clock")
	c.Flags().BoolVar(&before, "before-kubelet", false, "renew on the disk only; the kubelet starts afterwards")
	return c
}

func (o *onMachine) allInOne(errs io.Writer) *controlplane.Machine {
	return allinone.NewMachine(controlplane.Machine{
		Root: o.root, Output: errs, Interval: interval, Systemctl: systemctl(errs), Host: func() (controlplane.Host, error) { return controlplane.ReadHost(o.root) },
	})
}
