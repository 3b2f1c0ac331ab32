// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What was started in the shell ends with it, however that ends.
func TestNothingIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		last      string
		interrupt bool
	}{
		"end": {"true", false}, "failure": {"exit 1", false}, "interruption": {`sleep 1000 >"$PIPE"`, true},
		"interruption and trap": {`trap '' TERM INT; sleep 1000 >"$PIPE"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				reader, err := os.Open(pipe) // returns when the first process has opened it for writing
				if err == nil {
					if test.interrupt {
						cancel()
					}
					_, err = io.Copy(io.Discard, reader) // until the last process has closed it
				}
				ended <- err
			}()
			// A file, as a terminal is: a pipe would stay open as long as a background job.
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close() //nolint:errcheck // it is read below
			err = Bash{
				Programs: map[string]string{"greet": "/bin/echo"}, Scratch: t.TempDir(), Environment: []string{"PIPE=" + pipe},
				In: strings.NewReader("greet hello\nsleep 1000 >\"$PIPE\" &\n: >\"$PIPE\"\n" + test.last + "\n"), Out: out,
			}.Run(ctx)
			if (err == nil) != (test.last == "true") {
				t.Errorf("%s: %v", test.last, err)
			}
			if printed, err := os.ReadFile(out.Name()); err != nil || string(printed) != "hello\n" {
				t.Errorf("printed %q, %v", printed, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
