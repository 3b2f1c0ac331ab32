// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func took(kubeadm, rendered time.Duration) Round {
	return Round{
		Kubeadm:   Result{Start: Start{Took: kubeadm}, Checks: []string{"ping", "etcd"}, StaticPods: make([]string, 4), Secrets: 2},
		Rendered:  Result{Start: Start{Took: rendered}, Checks: []string{"etcd", "ping", "more"}, StaticPods: make([]string, 4), Secrets: 5, Encrypted: 5},
		Rendering: Rendering{Took: time.Second, Processor: 2 * time.Second, Memory: 100 << 20},
	}
}

func with(r Round, change func(*Round)) Round {
	change(&r)
	return r
}

func TestMissed(t *testing.T) {
	good := took(10*time.Second, 11*time.Second)
	for name, test := range map[string]struct {
		rounds Comparison
		want   []string
	}{
		"at the bound":      {rounds: Comparison{good}},
		"above it":          {rounds: Comparison{took(10*time.Second, 11010*time.Millisecond)}, want: []string{"11.01 s, best of 1; kubeadm 10.00 s, ratio 1.10; max 1.1 times kubeadm's"}},
		"the best of each":  {rounds: Comparison{took(20*time.Second, 11*time.Second), took(10*time.Second, 30*time.Second)}},
		"never good enough": {rounds: Comparison{took(10*time.Second, 12*time.Second), took(9*time.Second, 30*time.Second)}, want: []string{"12.00 s, best of 2; kubeadm 9.00 s, ratio 1.33; max 1.1 times kubeadm's"}},
		"rendering is slow": {
			rounds: Comparison{with(good, func(r *Round) { r.Rendering.Took = 3 * time.Second })}, want: []string{"3.00 s (2.00 s of processors), 100 MiB; -; max 3.00 s, 256 MiB"},
		},
		"rendering was slow once": {rounds: Comparison{with(good, func(r *Round) { r.Rendering.Took = 3 * time.Second }), good}},
		"rendering needed memory once": {
			rounds: Comparison{with(good, func(r *Round) { r.Rendering.Memory = 256 << 20 }), good}, want: []string{"1.00 s (2.00 s of processors), 256 MiB; -; max 3.00 s, 256 MiB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, row := range test.rounds.Missed() {
				got = append(got, row.Measured+"; "+row.Compared+"; "+row.Bound)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := test.rounds.Err(); err != nil {
				t.Errorf("a missed bound must not be an error, got %v", err)
			}
		})
	}
}

func TestErr(t *testing.T) {
	good := took(10*time.Second, 11*time.Second)
	for name, test := range map[string]struct {
		rounds Comparison
		want   error
		text   string
	}{
		"in plain text": {
			rounds: Comparison{with(good, func(r *Round) { r.Rendered.Encrypted = 4 })}, want: ErrPlainText, text: "4 of 5",
		},
		"fewer checks": {
			rounds: Comparison{with(good, func(r *Round) { r.Rendered.Checks = []string{"ping"} })}, want: ErrReadiness, text: "lacks: etcd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.rounds.Err()
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.text)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	if err := (Comparison{took(9500*time.Millisecond, 10*time.Second), took(10*time.Second, 9*time.Second)}).Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `ROUND  BY          FIRST CONTAINER TO READY  RESTARTS  READINESS    STATIC PODS  SECRETS ENCRYPTED
1      kubeadm     9.50 s                    0         2 checks ok  4            0 of 2
1      sno-render  10.00 s                   0         3 checks ok  4            5 of 5
2      kubeadm     10.00 s                   0         2 checks ok  4            0 of 2
2      sno-render  9.00 s                    0         3 checks ok  4            5 of 5
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
