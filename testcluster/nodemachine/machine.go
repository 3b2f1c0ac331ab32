// SPDX-License-Identifier: Apache-2.0

package nodemachine

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

var (
	// ErrConfig is returned for an invalid configuration.
	ErrConfig = errors.New("invalid machine configuration")
	// ErrAlreadyExists is returned when a machine of the same name exists.
	ErrAlreadyExists = errors.New("the machine exists already")
	// ErrBoot is returned when a machine does not start.
	ErrBoot = errors.New("the machine does not boot")
	// ErrNoDisk is returned when the machine's disk is not bootable; firmware tries the next medium then.
	ErrNoDisk = errors.New("the disk is not bootable")
)

const (
	label         = "sno.solonode.github.io/nodemachine"
	bootTimeout   = 2 * time.Minute
	deleteTimeout = 2 * time.Minute
	poll          = 100 * time.Millisecond
	noDisk        = "4"
)

//go:embed init.sh
var initScript string

//go:embed fill.sh
var fillScript string

// Config describes a machine.
type Config struct {
	Name string
	// Hostname is what a DHCP server would assign. Empty: Name.
	Hostname string
	// Aliases are additional names in the machine's network, as entered into a DNS server.
	Aliases []string
	// Network connects the machines with the same value. Empty: a separate network with the machine's name, in which
	// its address never changes.
	Network string
	// Medium is a local folder that is /medium until the machine's system starts. If it contains the program
	// ignition, the first boot applies /boot/ignition/config.ign of the disk, or config.ign of the medium.
	Medium string
	// InstallTarget is the name of a machine that is off; its disk is at /disk.
	InstallTarget string
	// Image fills the disk. Empty: nodeimage.Ensure.
	Image    string
	Progress io.Writer
}

var nameSyntax = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}[a-z0-9]$`)

func (c Config) defaulted() (Config, error) {
	if c.Network == "" {
		c.Network = c.Name
	}
	if c.Hostname == "" {
		c.Hostname = c.Name
	}
	for _, name := range []string{c.Name, c.Network} {
		if !nameSyntax.MatchString(name) {
			return c, fmt.Errorf("%w: the name %q must be lower-case letters, digits and dashes, from 2 to 42 of them", ErrConfig, name)
		}
	}
	for _, name := range append([]string{c.Hostname}, c.Aliases...) {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return c, fmt.Errorf("%w: %q is not the name of a host: %s", ErrConfig, name, strings.Join(wrong, ", "))
		}
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

// Machine is a container with a disk.
type Machine struct {
	name, hostname, network string
	engine                  engine.Engine
	address                 string
	progress                io.Writer
	made                    time.Time
	options                 []string
}

// Create makes a machine, which is off, and fills its disk. If that fails or the context ends, it removes everything.
func Create(ctx context.Context, config Config) (*Machine, error) {
	m, err := named(ctx, config)
	if err != nil {
		return nil, err
	}
	if config.Medium != "" {
		m.options = append(m.options, "--volume", config.Medium+":/medium:ro")
	}
	if config.InstallTarget != "" {
		m.options = append(m.options, "--volume", config.InstallTarget+":/disk")
	}
	for _, alias := range config.Aliases {
		m.options = append(m.options, "--network-alias", alias)
	}
	if err := m.leftover(ctx); err != nil {
		return nil, err
	}
	if config.Image == "" {
		if config.Image, _, err = nodeimage.Ensure(ctx, m.engine, m.progress); err != nil {
			return nil, err
		}
	}
	if err := m.assemble(ctx, config.Image); err != nil {
		return nil, errors.Join(fmt.Errorf("make machine %s: %w", config.Name, err), m.Delete())
	}
	m.say("its disk is filled")
	return m, nil
}

func (m *Machine) leftover(ctx context.Context) error {
	containers, err := m.engine.Output(ctx, "ps", "--all", "--quiet", "--filter", "name=^"+m.name+"$")
	if err != nil {
		return err
	}
	volumes, err := m.engine.Output(ctx, "volume", "ls", "--quiet", "--filter", "name=^"+m.name+"$")
	if err != nil {
		return err
	}
	if containers+volumes != "" {
		return fmt.Errorf("%w: remove %s, or choose another name", ErrAlreadyExists, m.name)
	}
	return nil
}

func (m *Machine) assemble(ctx context.Context, image string) error {
	there, err := m.engine.Output(ctx, "network", "ls", "--quiet", "--filter", "name=^"+m.network+"$")
	if err != nil {
		return err
	}
	if there == "" {
		if err := m.make(ctx, "network", "create", "--label", label+"="+m.network, m.network); err != nil {
			return err
		}
	}
	if err := m.make(ctx, "volume", "create", "--label", label+"="+m.name, m.name); err != nil {
		return err
	}
	if err := m.fill(ctx, image); err != nil {
		return err
	}
	arguments := append([]string{"create", "--name", m.name, "--hostname", m.hostname, "--label", label + "=" + m.name, "--network", m.network,
		"--privileged", "--cgroupns", "private", "--tmpfs", "/run:exec", "--tmpfs", "/tmp", "--volume", m.disk()}, m.options...)
	return m.make(ctx, append(arguments,
		"--env", "container=docker", "--stop-signal", "SIGRTMIN+3", // systemd powers off on it
		"--entrypoint", "/bin/sh", image, "-c", initScript)...)
}

func (m *Machine) disk() string { return m.name + ":/sysroot" }

func (m *Machine) fill(ctx context.Context, image string) error {
	filler := m.name + "-fill"
	if err := m.make(ctx, "create", "--name", filler, "--label", label+"="+m.name, "--network", "none", "--volume", m.disk(),
		"--entrypoint", "/bin/sh", image, "-c", fillScript, "fill", m.hostname); err != nil {
		return err
	}
	if _, err := m.engine.Output(ctx, "start", "--attach", filler); err != nil {
		return err
	}
	_, err := m.engine.Output(ctx, "rm", filler)
	return err
}

// make runs a creating command of the engine. An interruption waits for it: what the engine creates later would never
// be removed.
func (m *Machine) make(ctx context.Context, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller adds the object
	}
	cmd := m.engine.Command(context.WithoutCancel(ctx), args...)
	// A terminal sends the interruption to the whole process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: docker %s: %w: %s", engine.ErrCommand, strings.Join(args, " "), err, bytes.TrimSpace(said))
	}
	return ctx.Err() //nolint:wrapcheck // the caller adds the object
}

// Start turns the machine on and returns when systemd has started all enabled units. It continues with the disk as it
// was left.
func (m *Machine) Start(ctx context.Context) error {
	if err := m.PowerOn(ctx); err != nil {
		return err
	}
	return m.WaitBooted(ctx)
}

// PowerOn turns the machine on and returns at once.
func (m *Machine) PowerOn(ctx context.Context) error {
	if _, err := m.engine.Output(ctx, "start", m.name); err != nil {
		return err
	}
	return m.locate(ctx)
}

// WaitBooted returns when systemd has started all enabled units, and an error when the machine turns itself off before.
func (m *Machine) WaitBooted(ctx context.Context) error {
	state := ""
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, bootTimeout, true, func(ctx context.Context) (bool, error) {
		state, last = m.Exec(ctx, "sh", "-c", "systemctl is-system-running || true")
		if last != nil {
			return false, m.ended(ctx)
		}
		return state == "running" || state == "degraded", nil
	})
	if err != nil {
		return fmt.Errorf("%w: systemd of %s is %q: %w", ErrBoot, m.name, state, errors.Join(err, last))
	}
	if state == "degraded" {
		failed, err := m.Exec(ctx, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "--full")
		if err != nil {
			return err
		}
		m.say("units have failed: %s", strings.Join(strings.Fields(failed), " "))
	}
	m.say("it runs at %s", m.address)
	return nil
}

func (m *Machine) ended(ctx context.Context) error {
	code, err := m.engine.Output(ctx, "inspect", "--format", "{{if not .State.Running}}{{.State.ExitCode}}{{end}}", m.name)
	if err != nil || code == "" {
		return err
	}
	said, err := m.engine.Command(ctx, "logs", "--tail", "5", m.name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("read the console of %s: %w", m.name, err)
	}
	why := errOff
	if code == noDisk {
		why = ErrNoDisk
	}
	return fmt.Errorf("%w: %s", why, bytes.TrimSpace(said))
}

var errOff = errors.New("it has turned itself off")

func (m *Machine) locate(ctx context.Context) (err error) {
	m.address, err = m.engine.Output(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", m.name)
	return err
}

// PowerCut ends all processes of the machine at once and returns when it is off. Unlike a power cut it keeps data
// that was written and not synchronised, because the kernel keeps running.
func (m *Machine) PowerCut(ctx context.Context) error {
	if _, stuck := m.engine.Output(ctx, "kill", "--signal", "KILL", m.name); stuck != nil {
		if ended := m.ended(ctx); errors.Is(ended, errOff) || errors.Is(ended, ErrNoDisk) {
			return nil
		}
		if err := m.thaw(ctx); err != nil {
			return errors.Join(stuck, err)
		}
		ending, cancel := context.WithTimeout(ctx, bootTimeout)
		defer cancel()
		if err := m.WaitPoweredOff(ending); err != nil {
			return errors.Join(stuck, err)
		}
		return nil
	}
	return m.WaitPoweredOff(ctx)
}

// thaw lets killed processes end. With control groups of version 1 a frozen process does not end, and the machine's
// container runtime, which freezes new containers for a moment, may have ended in that moment.
func (m *Machine) thaw(ctx context.Context) error {
	said, err := m.engine.Output(ctx, "inspect", "--format", "{{.Id}} {{.Image}}", m.name)
	if err != nil {
		return err
	}
	id, image, _ := strings.Cut(said, " ")
	_, err = m.engine.Output(ctx, "run", "--rm", "--privileged", "--network", "none", "--label", label+"="+m.name,
		"--volume", "/sys/fs/cgroup:/cgroup", "--entrypoint", "/bin/sh", image, "-c", thawScript, "thaw", id)
	return err
}

const thawScript = `find /cgroup/freezer -path "*$1*" -name freezer.state | while read -r state; do echo THAWED >"$state"; done`

// Reboot makes systemd shut down in order, and starts the machine again.
func (m *Machine) Reboot(ctx context.Context) error {
	// The machine may end before the answer arrives.
	_, asked := m.Exec(ctx, "systemctl", "reboot")
	ending, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := m.WaitPoweredOff(ending); err != nil {
		return errors.Join(err, asked)
	}
	return m.Start(ctx)
}

// WaitPoweredOff returns when the machine is off, also for a restart: a container does not start by itself.
func (m *Machine) WaitPoweredOff(ctx context.Context) error {
	_, err := m.engine.Output(ctx, "wait", m.name)
	return err
}

// Delete removes the machine, its disk, and its network if no other machine is in it. It also removes an incomplete
// machine.
func (m *Machine) Delete() error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout) //nolint:forbidigo // runs after all contexts have ended
	defer cancel()
	var errs []error
	if runs, err := m.engine.Output(ctx, "ps", "--quiet", "--filter", "name=^"+m.name+"$"); err != nil || runs != "" {
		errs = append(errs, err, m.PowerCut(ctx))
	}
	remove := func(list, remove []string) {
		ids, err := m.engine.Output(ctx, list...)
		errs = append(errs, err)
		if ids == "" {
			return
		}
		_, err = m.engine.Output(ctx, append(remove, strings.Fields(ids)...)...)
		errs = append(errs, err)
	}
	remove([]string{"ps", "--all", "--quiet", "--filter", "label=" + label + "=" + m.name}, []string{"rm", "--force", "--volumes"})
	remove([]string{"volume", "ls", "--quiet", "--filter", "label=" + label + "=" + m.name}, []string{"volume", "rm", "--force"})
	if others, err := m.engine.Output(ctx, "ps", "--all", "--quiet", "--filter", "network="+m.network); err != nil || others == "" {
		errs = append(errs, err)
		remove([]string{"network", "ls", "--quiet", "--filter", "label=" + label + "=" + m.network}, []string{"network", "rm"})
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove machine %s: %w", m.name, err)
	}
	m.say("it is gone")
	return nil
}

func named(ctx context.Context, config Config) (*Machine, error) {
	config, err := config.defaulted()
	if err != nil {
		return nil, err
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return nil, err
	}
	return &Machine{
		name: config.Name, hostname: config.Hostname, network: config.Network, engine: e, progress: config.Progress, made: time.Now(),
	}, nil
}

// Name returns the name of the machine, which is that of its container.
func (m *Machine) Name() string { return m.name }

// Address returns the address of the machine since its last Start. On Linux this machine can reach it.
func (m *Machine) Address() string { return m.address }

// Network returns the address range of the machine's network, and the address of this machine in it.
func (m *Machine) Network(ctx context.Context) (subnet, gateway string, err error) {
	out, err := m.engine.Output(ctx, "network", "inspect", "--format", "{{with index .IPAM.Config 0}}{{.Subnet}} {{.Gateway}}{{end}}", m.network)
	subnet, gateway, _ = strings.Cut(out, " ")
	return subnet, gateway, err
}

// Containerd returns the container runtime of the machine.
func (m *Machine) Containerd() nodeimage.Containerd {
	return nodeimage.Containerd{Engine: m.engine, Container: m.name}
}

// DisconnectNetwork disconnects the machine from its network. ConnectNetwork reconnects it, possibly with another
// address.
func (m *Machine) DisconnectNetwork(ctx context.Context) error {
	_, err := m.engine.Output(ctx, "network", "disconnect", m.network, m.name)
	return err
}

// ConnectNetwork is the reverse of DisconnectNetwork.
func (m *Machine) ConnectNetwork(ctx context.Context) error {
	if _, err := m.engine.Output(ctx, "network", "connect", m.network, m.name); err != nil {
		return err
	}
	return m.locate(ctx)
}

// Console returns the output of the machine before its system started, such as Ignition's.
func (m *Machine) Console(ctx context.Context) (string, error) {
	return m.engine.Output(ctx, "logs", m.name)
}

// Exec runs a command on the machine as root and returns its output.
func (m *Machine) Exec(ctx context.Context, command ...string) (string, error) {
	return m.engine.Output(ctx, append([]string{"exec", m.name}, command...)...)
}

// Journal writes the machine's journal of this boot, and follows it until the machine is off or the context ends.
func (m *Machine) Journal(ctx context.Context, out io.Writer) error {
	cmd := m.engine.Command(ctx, "exec", m.name, "journalctl", "--boot", "--follow", "--lines=all", "--output=short-precise")
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("follow the journal of machine %s: %w", m.name, err)
	}
	return nil
}

// Logs writes the output of Ignition, the journal and the logs of the pods, as far as they exist, into a folder.
func (m *Machine) Logs(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep the logs of machine %s: %w", m.name, err)
	}
	errs := []error{m.keep(ctx, filepath.Join(folder, "console.log"), "logs", m.name)}
	for file, command := range map[string]string{
		"journal.log":    "journalctl --no-pager --output=short-precise",
		"containers.log": "crictl ps --all; crictl pods",
		"pods.tar":       "tar --create --directory=/var/log --dereference --ignore-failed-read pods",
	} {
		errs = append(errs, m.keep(ctx, filepath.Join(folder, file), "exec", m.name, "sh", "-c", command))
	}
	return errors.Join(errs...)
}

func (m *Machine) keep(ctx context.Context, file string, command ...string) error {
	out, err := os.Create(file)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	cmd := m.engine.Command(ctx, command...)
	cmd.Stdout = out
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("keep %s of machine %s: %w", filepath.Base(file), m.name, err)
	}
	return nil
}

func (m *Machine) say(format string, args ...any) {
	_, _ = fmt.Fprintf(m.progress, "%5.1fs  %s: %s\n", time.Since(m.made).Seconds(), m.name, fmt.Sprintf(format, args...))
}
