// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bootTimeout is for software on a busy machine.
const bootTimeout = 10 * time.Minute

func tiny(t *testing.T, config Config, script string) (m *Machine, rewrite func(script string)) {
	t.Helper()
	if testing.Short() {
		t.Skip("a virtual machine takes a minute")
	}
	image, err := Ensure(t.Context(), t.Output())
	if errors.Is(err, ErrMissing) {
		t.Skipf("NOT TESTED: virtual machines: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script")
	rewrite = func(script string) {
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(script)
	config.Name, config.Folder, config.Progress = "tiny", filepath.Join(t.TempDir(), "m"), t.Output()
	config.Handed = map[string]string{"opt/sno/script": file}
	m, err = Create(image.Tiny(config))
	if errors.Is(err, ErrMissing) {
		t.Skipf("NOT TESTED: virtual machines: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Delete(); err != nil {
			t.Error(err)
		}
	})
	return m, rewrite
}

func bootUntil(t *testing.T, m *Machine, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitConsole(ctx, text); err != nil {
		t.Fatal(err)
	}
}

// A power cut loses exactly what was not flushed, although the machine itself could read it back.
func TestPowerCut(t *testing.T) {
	const read = "for at in 0 1; do echo block $at: $(dd if=/dev/vda bs=4096 skip=$at count=1 iflag=direct 2>/dev/null | tr '\\0' '-' | head -c 7); done\n"
	m, rewrite := tiny(t, Config{DiskSize: 1 << 20}, `yes written | head -c 4096 >/block
dd if=/block of=/dev/vda bs=4096 seek=0 oflag=direct conv=notrunc,fsync
dd if=/block of=/dev/vda bs=4096 seek=1 oflag=direct conv=notrunc
`+read+"sleep 100000\n")
	bootUntil(t, m, "block 1: written")
	if err := m.PowerCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	rewrite(read)
	bootUntil(t, m, "block 1: -------")
	if !strings.Contains(m.Console(), "block 0: written") {
		t.Errorf("what was flushed is lost:\n%s", m.Console())
	}
	if err := m.WaitPoweredOff(t.Context()); err != nil {
		t.Error(err)
	}
	if err := m.WaitConsole(t.Context(), "something else"); !errors.Is(err, ErrOff) {
		t.Errorf("of a machine that has turned itself off: %v", err)
	}
}

func TestUEFI(t *testing.T) {
	m, _ := tiny(t, Config{DiskSize: 1 << 20, UEFI: true}, "ls -d /sys/firmware/efi/efivars")
	bootUntil(t, m, "\n/sys/firmware/efi/efivars")
}

func TestForwarded(t *testing.T) {
	m, _ := tiny(t, Config{DiskSize: 1 << 20, Forward: []int{80}}, `ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
echo hello | nc -l -p 80 &
until netstat -ltn | grep :80; do :; done
echo "sno: listens"
wait
`)
	bootUntil(t, m, "sno: listens")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", m.Forwarded(80))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got, err := bufio.NewReader(conn).ReadString('\n'); got != "hello\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "m")
	for _, program := range []string{qemu, "nbdkit"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(image), program), nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "")
	_, err := Create(Config{Folder: folder})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without QEMU: %v", err)
	}
	t.Setenv("PATH", filepath.Dir(image))
	if _, err := Create(Config{Folder: folder, Image: image, DiskSize: 999}); !errors.Is(err, ErrConfig) {
		t.Errorf("a disk too small for its image: %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of what was refused: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines("first\n\x1b[0;32m OK \x1b[0m Started\r\n\n\x1b[2J\n", 1); got != "OK  Started" {
		t.Errorf("%q", got)
	}
}
