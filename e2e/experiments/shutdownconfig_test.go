// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestDecideShutdown(t *testing.T) {
	var pods []corev1.Pod
	for _, pod := range shutdownPods("worker") {
		pods = append(pods, *pod)
	}
	got, err := decideShutdown(corev1.Node{}, pods)
	if err != nil {
		t.Fatal(err)
	}
	want := shutdownConfig{
		map[string]any{"shutdownGracePeriod": "1m0s", "shutdownGracePeriodCriticalPods": "30s"},
		dropIn{"/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf", "[Login]\nInhibitDelayMaxSec=60\n"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(shutdownConfig{}, dropIn{})); diff != "" {
		t.Error(diff)
	}
}

func TestConfigurationTaken(t *testing.T) {
	fields := map[string]any{"shutdownGracePeriod": "1m0s", "shutdownGracePeriodCriticalPods": "30s"}
	for configz, err := range map[string]error{
		`{"kubeletconfig":{"shutdownGracePeriod":"1m0s","shutdownGracePeriodCriticalPods":"30s","logging":{}}}`: nil,
		`{"kubeletconfig":{"shutdownGracePeriod":"60s","shutdownGracePeriodCriticalPods":"30s"}}`:               nil,
		`{"kubeletconfig":{"shutdownGracePeriod":"0s","shutdownGracePeriodCriticalPods":"0s"}}`:                 errNotLoaded,
		`{"kubeletconfig":{"shutdownGracePeriod":"1m0s"}}`:                                                      errNotLoaded,
		`{"kubeletconfig":{}}`: errNotLoaded,
		`no`:                   errNotLoaded,
	} {
		if got := runsWith([]byte(configz), fields); !errors.Is(got, err) {
			t.Errorf("%s: %v, want %v", configz, got, err)
		}
	}
	for property, err := range map[string]error{"t 60000000": nil, "t 5000000": errNotLoaded, "": errNotLoaded} {
		if got := delayPermitted(property, fields); !errors.Is(got, err) {
			t.Errorf("property %q: %v, want %v", property, got, err)
		}
	}
}

func TestMerge(t *testing.T) {
	text, err := merge("kind: KubeletConfiguration\nshutdownGracePeriod: 0s\n", map[string]any{"shutdownGracePeriod": "1m0s"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"kind": "KubeletConfiguration", "shutdownGracePeriod": "1m0s"}, got); diff != "" {
		t.Error(diff)
	}
}
