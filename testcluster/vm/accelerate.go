// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

var (
	// In software the instructions that these flags announce are slow: they copy byte by byte.
	software = []string{"-accel", "tcg,thread=multi", "-cpu", "max,erms=off,fsrm=off"}
	hardware = []string{"-accel", "kvm", "-cpu", "host"}
)

const (
	kvm = "/dev/kvm"
	// trialTimeout is many times what a boot of the tiny kernel takes on KVM.
	trialTimeout = 30 * time.Second
)

var chosen struct {
	sync.Mutex
	accel []string
}

// acceleration returns the options for KVM if a machine boots with it, and otherwise those for software, which it
// reports in a line. The device alone means nothing: there are machines where its guests do not get through firmware.
func acceleration(ctx context.Context, progress io.Writer) []string {
	chosen.Lock()
	defer chosen.Unlock()
	if chosen.accel == nil {
		err := try(ctx, hardware)
		if ctx.Err() != nil {
			return software // nothing was found out
		}
		chosen.accel = hardware
		if err != nil {
			_, _ = fmt.Fprintf(progress, "KVM does not work, so processors are emulated in software, which takes minutes instead of seconds: %v\n", err)
			chosen.accel = software
		}
	}
	return chosen.accel
}

func try(ctx context.Context, accel []string) (err error) {
	if _, err := os.Stat(kvm); err != nil {
		return err //nolint:wrapcheck // complete
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	image, err := Ensure(ctx, io.Discard)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sno-vm-")
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	m, err := Create(image.Tiny(Config{Name: "trial", Folder: filepath.Join(folder, "m"), DiskSize: 1 << 20}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Delete()) }()
	if err := m.powerOn(ctx, accel); err != nil {
		return err
	}
	return m.WaitConsole(ctx, TinyInit)
}
