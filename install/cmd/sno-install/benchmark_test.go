// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkCreate measures the time and the peak memory of each command that creates a config, with new keys.
func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "sno-install")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	config, err := os.ReadFile("../../installconfig/testdata/install-config.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for name, arguments := range map[string][]string{
		"single-node-openshift": {
			"single-node-ignition-config", "--program-in-image", "--release-image", "registry.example.com/release@sha256:" + strings.Repeat("0", 64), "--master-ignition", "http://localhost:22624/config/master",
		},
		"single-node-kubernetes": {"single-node-ignition-config", "--program-in-image", "--profile", "kubernetes", "--kubernetes-version", "1.35.2"},
		"aio":                    {"aio-ignition", "--program-in-image", "--kubernetes-version", "1.35.2"},
	} {
		b.Run(name, func(b *testing.B) {
			var most int64
			for b.Loop() {
				b.StopTimer()
				folder := b.TempDir()
				if err := os.WriteFile(filepath.Join(folder, "install-config.yaml"), config, 0o600); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				c := exec.CommandContext(b.Context(), program, append([]string{"create"}, append(arguments, "--dir", folder)...)...)
				if out, err := c.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
				if !ok {
					b.Fatal("no resource usage of the process")
				}
				most = max(most, usage.Maxrss) // in KiB
			}
			b.ReportMetric(float64(most)/1024, "MiB-most")
		})
	}
}
