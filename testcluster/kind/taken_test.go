// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/exec"
)

var (
	errExit  = errors.New("exit status 125")
	errOther = errors.New("no such image")
)

func refused(output string) error {
	return &exec.RunError{Command: []string{"docker", "run", "--name", "a-control-plane2"}, Output: []byte(output), Inner: errExit}
}

func TestWhileTaken(t *testing.T) {
	port := refused("0123abc\ndocker: Error response from daemon: driver failed programming external connectivity on endpoint a-control-plane2: " +
		"Bind for 127.0.0.1:43069 failed: port is already allocated.\n")
	name := refused("docker: Error response from daemon: Conflict. The container name \"/a-control-plane\" is already in use by container \"0123abc\".\n")
	memory := refused("docker: Error response from daemon: cannot allocate memory.\n")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for test, is := range map[string]struct {
		interrupted bool
		results     []error
		remove      error
		// creations and removals are numbers of calls, and want is the end of the error, "" for none.
		creations, removals int
		want                string
	}{
		"at once":         {results: []error{nil}, creations: 1},
		"a port":          {results: []error{port, nil}, creations: 2, removals: 1},
		"a port, a name":  {results: []error{port, name, nil}, creations: 3, removals: 2},
		"always":          {results: []error{port, port, port, port, nil}, creations: 4, removals: 3, want: "43069 failed: port is already allocated."},
		"another refusal": {results: []error{memory, nil}, creations: 1, want: "exit status 125: docker: Error response from daemon: cannot allocate memory."},
		"no command":      {results: []error{errOther, nil}, creations: 1, want: "no such image"},
		"interrupted":     {interrupted: true, results: []error{port, nil}, creations: 1, want: "43069 failed: port is already allocated."},
		"left over":       {results: []error{port, nil}, remove: errOther, creations: 1, removals: 1, want: "could not be removed: no such image"},
	} {
		t.Run(test, func(t *testing.T) {
			c := &Cluster{progress: io.Discard, started: time.Now()}
			creations, removals := 0, 0
			ctx := t.Context()
			if is.interrupted {
				ctx = interrupted
			}
			err := c.whileTaken(ctx, func() error {
				creations++
				return is.results[creations-1]
			}, func() error {
				removals++
				return is.remove
			})
			if creations != is.creations || removals != is.removals {
				t.Errorf("%d creations and %d removals, want %d and %d", creations, removals, is.creations, is.removals)
			}
			if (err == nil) != (is.want == "") || err != nil && !strings.HasSuffix(err.Error(), is.want) {
				t.Errorf("error %v, want one that ends with %q", err, is.want)
			}
		})
	}
}

func TestExplainedIsBounded(t *testing.T) {
	err := explained(refused(strings.Repeat("line\n", 10*maxSaid) + "the reason"))
	if text := err.Error(); len(text) > maxSaid+200 || !strings.HasSuffix(text, "; the reason") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
