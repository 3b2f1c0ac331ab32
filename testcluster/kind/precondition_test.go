// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	plenty := machine{memory: 16 * gibibyte, disk: 100 * gibibyte, watches: 100, folder: "/var/lib/docker"}
	for name, test := range map[string]struct {
		config    Config
		machine   machine
		leftover  []string
		want      error
		wantTexts []string
	}{
		"enough":  {config: Config{Name: "a", ControlPlanes: 1, Workers: 2}, machine: plenty},
		"unknown": {config: Config{Name: "a", ControlPlanes: 3}, machine: machine{memory: -1, disk: -1, watches: -1}},
		"just enough": {
			config:  Config{Name: "a", ControlPlanes: 1, Workers: 2},
			machine: machine{memory: 1900 * mebibyte, disk: 5 * gibibyte, watches: 44},
		},
		"memory": {
			config: Config{Name: "a", ControlPlanes: 1, Workers: 2}, machine: machine{memory: 1900*mebibyte - 1, disk: -1, watches: -1}, want: ErrInsufficientResources,
			wantTexts: []string{"3 nodes need 1900 MiB of free memory, 1899 MiB are free"},
		},
		"disk": {
			config: Config{Name: "a", ControlPlanes: 3, Workers: 1}, machine: machine{memory: -1, disk: gibibyte / 2, watches: -1, folder: "/data"}, want: ErrInsufficientResources,
			wantTexts: []string{"4 nodes need 6.0 GiB of free disk in /data, 0.5 GiB are free", "docker system prune"},
		},
		"inotify": {
			config: Config{Name: "a", ControlPlanes: 1, Workers: 2}, machine: machine{memory: -1, disk: -1, watches: 43}, want: ErrInsufficientResources,
			wantTexts: []string{"3 nodes need 44 instances of inotify, 43 are free", "sysctl fs.inotify.max_user_instances=1024"},
		},
		"leftover": {
			config: Config{Name: "a", ControlPlanes: 1}, machine: plenty, leftover: []string{"a-control-plane", "a-worker"}, want: ErrAlreadyExists,
			wantTexts: []string{"a-control-plane, a-worker", "make kind-delete NAME=a"},
		},
		"everything at once": {
			config: Config{Name: "a", ControlPlanes: 1}, machine: machine{}, leftover: []string{"a-worker"}, want: ErrInsufficientResources,
			wantTexts: []string{"1400 MiB", "3.0 GiB", "20 instances", "a-worker"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(test.config.leftover(test.leftover), test.config.check(test.machine))
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			for _, text := range test.wantTexts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q lacks %q", err, text)
				}
			}
		})
	}
}

func TestAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       24683824 kB\nMemFree:  1 kB\nMemAvailable:   22000000 kB\n": 22000000 << 10,
		"MemTotal: 1 kB\n":     -1,
		"MemAvailable: much\n": -1,
	} {
		if got := available(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
