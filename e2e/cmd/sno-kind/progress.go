// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// progress writes the output of several clusters line by line.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, began: time.Now()} }

// logf prints an activity and the time since the start.
func (t *progress) logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// An error of progress output is not relevant.
	_, _ = fmt.Fprintf(t.out, "== %s (%s)\n", fmt.Sprintf(format, args...), time.Since(t.began).Round(time.Second))
}

// by returns a writer that adds a prefix to each line.
func (t *progress) by(word string) io.Writer { return &lines{progress: t, word: word + ": "} }

// lines buffers an incomplete line.
type lines struct {
	progress *progress
	word     string
	rest     []byte
}

func (l *lines) Write(text []byte) (int, error) {
	l.progress.mu.Lock()
	defer l.progress.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.rest = rest
		if _, err := fmt.Fprintf(l.progress.out, "%s%s\n", l.word, line); err != nil {
			return 0, err //nolint:wrapcheck // complete
		}
	}
}
