// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/prometheus/procfs"
	"golang.org/x/crypto/ssh"

	"github.com/solonode/sno/testcluster/embedded"
)

var (
	// ErrMissing is returned, with what to install, when a program is missing.
	ErrMissing = errors.New("no virtual machines here")
	// ErrConfig is returned for an invalid configuration.
	ErrConfig = errors.New("invalid machine configuration")
	// ErrOff is returned, with the last lines of the console, when the machine has turned itself off.
	ErrOff = errors.New("the machine is off")
)

const install = "apt-get install --no-install-recommends qemu-system-x86 ovmf nbdkit mmdebstrap uidmap"

var escapes = regexp.MustCompile("\x1b(\\[[0-9;?=]*[A-Za-z]|c)|[\x00-\x08\x0b-\x1f]")

// Config describes a machine.
type Config struct {
	// Name is that of progress and errors.
	Name string
	// Folder is a new folder for the disk and for console.log.
	Folder string
	// DiskSize is that of the disk in bytes. Image is a raw image that the disk begins with; empty: nothing is on it.
	DiskSize int64
	Image    string
	// CDROM is an image of a medium, from which firmware boots if the disk is not bootable.
	CDROM string
	// Kernel, Initrd and Append start a kernel instead of what firmware finds.
	Kernel, Initrd, Append string
	// UEFI is firmware with UEFI instead of BIOS.
	UEFI bool
	// Memory in MiB. 0: 1024.
	Memory int
	// NICs are the MAC addresses of the network cards, all in the same network. Empty: one.
	NICs []string
	// Clock is the time that the machine's clock has when it is turned on, as 2026-11-29T12:00:00. Empty: this machine's.
	Clock string
	// Handed are files that QEMU hands to the machine (fw_cfg), by their names there.
	Handed map[string]string
	// Forward are TCP ports of the machine that this one can reach at Forwarded.
	Forward []int
	// Key is that of user core, for Exec. Port 22 is then forwarded too.
	Key      ssh.Signer
	Progress io.Writer
}

// Machine is a virtual machine with a disk.
type Machine struct {
	config  Config
	ports   map[int]int
	log     *os.File
	console *console
	cmd     *exec.Cmd
	off     chan struct{} // closed when the machine has ended
	said    *bytes.Buffer // the complaints of QEMU and nbdkit

	connecting sync.Mutex
	connection *ssh.Client
}

// Create makes a machine, which is off, and its disk.
func Create(config Config) (*Machine, error) {
	for _, program := range []string{qemu, "nbdkit"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: there is no %s: %s", ErrMissing, program, install)
		}
	}
	config.Memory = cmp.Or(config.Memory, 1024)
	if len(config.NICs) == 0 {
		config.NICs = []string{"52:54:00:00:00:01"}
	}
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	if err := os.Mkdir(config.Folder, 0o755); err != nil {
		return nil, fmt.Errorf("make machine %s: %w", config.Name, err)
	}
	m := &Machine{config: config, ports: map[int]int{}, console: newConsole(config.Name, io.Discard, config.Progress), off: make(chan struct{}), said: &bytes.Buffer{}}
	close(m.off)
	if err := m.assemble(); err != nil {
		return nil, errors.Join(fmt.Errorf("make machine %s: %w", config.Name, err), m.Delete())
	}
	return m, nil
}

func (m *Machine) assemble() (err error) {
	if m.config.UEFI {
		if err := copyFile(m.path("vars.fd"), filepath.Join(ovmf, "OVMF_VARS_4M.fd"), 0); err != nil {
			return fmt.Errorf("%w: %w: %s", ErrMissing, err, install)
		}
	}
	if err := copyFile(m.path("disk.raw"), m.config.Image, m.config.DiskSize); err != nil {
		return err
	}
	if m.config.Key != nil {
		m.config.Forward = append(slices.Clone(m.config.Forward), SSHPort)
	}
	for _, port := range m.config.Forward {
		if m.ports[port], err = embedded.FreePort(); err != nil {
			return err
		}
	}
	m.log, err = os.Create(m.path("console.log"))
	return err //nolint:wrapcheck // complete
}

func (m *Machine) path(name string) string { return filepath.Join(m.config.Folder, name) }

// copyFile makes a sparse file with the content of another one, if any, and at least a size.
func copyFile(to, from string, size int64) error {
	out, err := os.Create(to)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	defer func() { _ = out.Close() }()
	if from == "" {
		return out.Truncate(size) //nolint:wrapcheck // complete
	}
	info, err := os.Stat(from)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	if size != 0 && size < info.Size() {
		return fmt.Errorf("%w: the disk has %d bytes, and its image %d: choose a larger one", ErrConfig, size, info.Size())
	}
	if said, err := exec.Command("cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, said)
	}
	return out.Truncate(max(size, info.Size())) //nolint:wrapcheck // complete
}

// PowerOn turns the machine on and returns at once. It continues with the disk as it was left, and runs until it turns
// itself off, also for a restart, until PowerCut or Delete, whatever becomes of the context.
func (m *Machine) PowerOn(ctx context.Context) error {
	return m.powerOn(ctx, acceleration(ctx, m.config.Progress))
}

func (m *Machine) powerOn(ctx context.Context, accel []string) error {
	if m.running() {
		return fmt.Errorf("%w: machine %s is on", ErrConfig, m.config.Name)
	}
	if err := os.Remove(m.path("disk.sock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // complete
	}
	// A process has the cache of this disk, and writes to the file only what is flushed: what QEMU itself writes is in
	// this machine's page cache, which outlives QEMU.
	m.cmd = exec.Command("nbdkit", "--unix", m.path("disk.sock"), "--filter=cache", "file", m.path("disk.raw"), "cache=writeback",
		"--run", "exec "+shellescape.QuoteCommand(append([]string{qemu}, append(accel, m.arguments()...)...)))
	m.cmd.Env = append(os.Environ(), "TMPDIR="+m.config.Folder)
	// A power cut is for the whole group, and an interruption from the terminal is not for it.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.console, m.said, m.off = newConsole(m.config.Name, m.log, m.config.Progress), &bytes.Buffer{}, make(chan struct{})
	m.cmd.Stdout, m.cmd.Stderr, m.cmd.WaitDelay = m.console, m.said, endTimeout
	if err := m.cmd.Start(); err != nil {
		return fmt.Errorf("turn machine %s on: %w", m.config.Name, err)
	}
	go func(cmd *exec.Cmd, off chan struct{}) {
		_ = cmd.Wait() // the console and the complaints of QEMU have the reason
		// Its cache ends with the machine.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(off)
	}(m.cmd, m.off)
	return nil
}

const (
	qemu = "qemu-system-x86_64"
	ovmf = "/usr/share/OVMF"
	// endTimeout is for nbdkit, which ends after QEMU.
	endTimeout = 5 * time.Second
)

func (m *Machine) arguments() []string {
	c := m.config
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-machine", "q35", "-display", "none", "-smp", "2", "-m", strconv.Itoa(c.Memory),
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console", "-device", "virtio-rng-pci",
		"-blockdev", "driver=nbd,node-name=disk,server.type=unix,server.path=" + m.path("disk.sock"),
		"-device", "virtio-blk-pci,drive=disk,bootindex=1",
	}
	if c.CDROM != "" {
		args = append(args, "-blockdev", "driver=file,node-name=medium,read-only=on,filename="+c.CDROM,
			"-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=medium,bootindex=2")
	}
	if c.UEFI {
		args = append(args, "-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+filepath.Join(ovmf, "OVMF_CODE_4M.fd"),
			"-drive", "if=pflash,unit=1,format=raw,file="+m.path("vars.fd"))
	}
	if c.Kernel != "" {
		args = append(args, "-kernel", c.Kernel, "-initrd", c.Initrd, "-append", c.Append)
	}
	for name, file := range c.Handed {
		args = append(args, "-fw_cfg", "name="+name+",file="+file)
	}
	if c.Clock != "" {
		args = append(args, "-rtc", "base="+c.Clock)
	}
	network := "user,id=user"
	for guest, host := range m.ports {
		network += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", host, guest)
	}
	args = append(args, "-netdev", network, "-netdev", "hubport,hubid=0,id=uplink,netdev=user")
	for i, mac := range c.NICs {
		nic := fmt.Sprintf("nic%d", i)
		args = append(args, "-netdev", "hubport,hubid=0,id="+nic, "-device", "virtio-net-pci,netdev="+nic+",mac="+mac)
	}
	return args
}

func (m *Machine) running() bool {
	select {
	case <-m.off:
		return false
	default:
		return true
	}
}

// PowerCut ends the machine at once, and returns when it is off. What it has written to its disk and not flushed is
// lost.
func (m *Machine) PowerCut(ctx context.Context) error {
	if err := m.kill(); err != nil {
		return err
	}
	return m.WaitPoweredOff(ctx)
}

func (m *Machine) kill() error {
	if !m.running() {
		return nil
	}
	if err := syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cut the power of machine %s: %w", m.config.Name, err)
	}
	return nil
}

// WaitPoweredOff returns when the machine is off, also for a restart: PowerOn continues it.
func (m *Machine) WaitPoweredOff(ctx context.Context) error {
	select {
	case <-m.off:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until machine %s is off: %w; its console ends with:\n%s", m.config.Name, ctx.Err(), m.lastWords())
	}
}

// WaitConsole returns when the machine has printed a text since it was turned on, and ErrOff when it turns itself off
// before.
func (m *Machine) WaitConsole(ctx context.Context, text string) error {
	for {
		off := !m.running()
		said, more := m.console.read()
		if strings.Contains(said, text) {
			return nil
		}
		if off {
			return fmt.Errorf("machine %s has not printed %q: %w: %s\n%s", m.config.Name, text, ErrOff, m.said, m.lastWords())
		}
		select {
		case <-more:
		case <-m.off:
		case <-ctx.Done():
			return fmt.Errorf("machine %s has not printed %q: %w; its console ends with:\n%s", m.config.Name, text, ctx.Err(), m.lastWords())
		}
	}
}

func (m *Machine) lastWords() string {
	said, _ := m.console.read()
	return lastLines(said, 5)
}

// Console returns what the machine has printed since it was turned on. The file console.log has that of all boots.
func (m *Machine) Console() string {
	said, _ := m.console.read()
	return said
}

// Forwarded returns the address of this machine at which a port of Config.Forward answers.
func (m *Machine) Forwarded(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.ports[port]))
}

// RemoveMedium removes the CD-ROM of a machine that is off.
func (m *Machine) RemoveMedium() { m.config.CDROM = "" }

// Processor returns the processor time that the machine has used since it was turned on, its disk included.
func (m *Machine) Processor() (time.Duration, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err //nolint:wrapcheck // complete
	}
	var seconds float64
	for _, process := range all {
		if its, err := process.Stat(); err == nil && its.PGRP == m.cmd.Process.Pid { // a process may have ended
			seconds += its.CPUTime()
		}
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Delete ends the machine and removes its folder.
func (m *Machine) Delete() error {
	err := m.kill()
	if err == nil {
		<-m.off
	}
	if m.log != nil {
		err = errors.Join(err, m.log.Close())
	}
	return errors.Join(err, os.RemoveAll(m.config.Folder))
}
