// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadiness(t *testing.T) {
	const good = "[+]ping ok\n[+]etcd ok\n[+]poststarthook/rbac/bootstrap-roles ok\nreadyz check passed\n"
	checks, err := readiness(good)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ping", "etcd", "poststarthook/rbac/bootstrap-roles"}, checks); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"one failed":   "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n",
		"excluded":     "[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n",
		"not the end":  "[+]ping ok\n",
		"nothing":      "",
		"no checks":    "readyz check passed\n",
		"another page": "ok",
	} {
		if checks, err := readiness(text); !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: %v, %v", name, checks, err)
		}
	}
}

func TestFirstPod(t *testing.T) {
	first, err := firstPod(`{"items":[{"id":"b","createdAt":"1700000000500000000"},{"id":"a","createdAt":"1700000000250000000"}]}`)
	if want := time.Unix(1700000000, 250_000_000); err != nil || !first.Equal(want) {
		t.Errorf("%v, %v, want %v", first, err, want)
	}
	for _, wrong := range []string{"", `{"items":[]}`, `{"items":[{"createdAt":"2026-01-01T00:00:00Z"}]}`} {
		if first, err := firstPod(wrong); !errors.Is(err, errRuntime) {
			t.Errorf("%q: %v, %v", wrong, first, err)
		}
	}
}

func TestRestarts(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"none":             {`{"containers":[{"podSandboxId":"p","metadata":{"name":"etcd","attempt":0}}]}`, 0},
		"the old is there": {`{"containers":[{"podSandboxId":"p","metadata":{"name":"a","attempt":1}},{"podSandboxId":"p","metadata":{"name":"a"}}]}`, 1},
		"the old is gone":  {`{"containers":[{"podSandboxId":"p","metadata":{"name":"a","attempt":3}}]}`, 3},
		"two pods":         {`{"containers":[{"podSandboxId":"p","metadata":{"name":"a","attempt":1}},{"podSandboxId":"q","metadata":{"name":"a","attempt":2}}]}`, 3},
	} {
		if got, err := restarts(test.text); err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, test.want)
		}
	}
	if _, err := restarts("nothing"); !errors.Is(err, errRuntime) {
		t.Error(err)
	}
}
