// SPDX-License-Identifier: Apache-2.0

package nodemachine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

func TestDefaulted(t *testing.T) {
	c, err := Config{Name: "a1"}.defaulted()
	if err != nil || c.Network != "a1" || c.Hostname != "a1" || c.Progress == nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := (Config{Name: "a1", Network: "site", Hostname: "edge-1"}).defaulted(); err != nil || c.Network != "site" || c.Hostname != "edge-1" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, wrong := range []Config{
		{}, {Name: "Not_a_host"}, {Name: "a-"}, {Name: strings.Repeat("a", 43)}, {Name: "a1", Network: "."},
		{Name: "a1", Hostname: "Not_a_host"}, {Name: "a1", Aliases: []string{"api-int.example.com", "*.example.com"}},
	} {
		if _, err := wrong.defaulted(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// A machine keeps its disk and its address over a power cut and a reboot, and boots each time; a deletion is complete.
func TestMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("a machine takes half a minute")
	}
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED: machines: %v", err)
	}
	m, err := Create(t.Context(), Config{Name: "sno-test-machine", Hostname: "edge-1", Aliases: []string{"api-int.edge.example.com"}, Progress: t.Output()})
	if errors.Is(err, nodeimage.ErrImage) {
		t.Skipf("NOT TESTED: machines: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Delete(); err != nil {
			t.Error(err)
		}
		for _, list := range [][]string{{"ps", "--all"}, {"volume", "ls"}, {"network", "ls"}} {
			left, err := e.Output(context.WithoutCancel(t.Context()), append(list, "--quiet", "--filter", "label="+label+"="+m.Name())...)
			if err != nil || left != "" {
				t.Errorf("%v: %q is left: %v", list, left, err)
			}
		}
	})
	if _, err := Create(t.Context(), Config{Name: m.Name()}); !errors.Is(err, ErrAlreadyExists) {
		t.Errorf("a second machine of the same name: %v", err)
	}
	run := func(command string) string {
		t.Helper()
		out, err := m.Exec(t.Context(), "sh", "-c", command)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run("hostname; readlink /proc/1/exe; systemctl is-active containerd"); got != "edge-1\n/usr/lib/systemd/systemd\nactive" {
		t.Errorf("its name, process 1 and containerd: %q", got)
	}
	if err := m.Put(t.Context(), File{Path: "etc/sno/kept", Mode: 0o640, Content: []byte("kept")}, File{Path: "run/lost", Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	run("sync")
	if got := run("getent ahostsv4 api-int.edge.example.com | cut -d' ' -f1 | sort -u"); got != m.Address() {
		t.Errorf("its alias is at %q, and it is at %s", got, m.Address())
	}
	run(`frozen=/sys/fs/cgroup/freezer/frozen; mkdir $frozen 2>/dev/null || exit 0
		sleep infinity >/dev/null 2>&1 & echo $! >$frozen/tasks && echo FROZEN >$frozen/freezer.state`)
	address, boots := m.Address(), run("systemctl show --property=UserspaceTimestampMonotonic")
	for _, act := range []struct {
		name string
		do   func() error
	}{
		{"power cut", func() error { return errors.Join(m.PowerCut(t.Context()), m.Start(t.Context())) }},
		{"reboot", func() error { return m.Reboot(t.Context()) }},
	} {
		if err := act.do(); err != nil {
			t.Fatalf("%s: %v", act.name, err)
		}
		if got := run("cat /etc/sno/kept; stat --format=:%a:%U /etc/sno/kept; ls /run/lost 2>/dev/null || echo off"); got != "kept:640:root\noff" {
			t.Errorf("after a %s: %q", act.name, got)
		}
		if m.Address() != address || address == "" {
			t.Errorf("after a %s it is at %s, before at %s", act.name, m.Address(), address)
		}
		again := run("systemctl show --property=UserspaceTimestampMonotonic")
		if again == boots {
			t.Errorf("after a %s systemd has not started again", act.name)
		}
		boots = again
	}
	if err := errors.Join(m.PowerCut(t.Context()), m.PowerCut(t.Context()), m.SaveDisk(t.Context()), m.WipeDisk(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); !errors.Is(err, ErrNoDisk) {
		t.Errorf("it boots from a disk that cannot be booted: %v", err)
	}
	if err := errors.Join(m.RestoreDisk(t.Context()), m.Start(t.Context())); err != nil {
		t.Fatalf("with the disk that was kept: %v", err)
	}
	if got := run("cat /etc/sno/kept; stat --format=:%a:%U /etc/sno/kept"); got != "kept:640:root" {
		t.Errorf("on the disk that was kept: %q", got)
	}
}
