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
func (p *progress) logf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// An error of progress output is not relevant.
	_, _ = fmt.Fprintf(p.out, "== %s (%s)\n", fmt.Sprintf(format, args...), time.Since(p.began).Round(time.Second))
}

// by returns a writer that adds a prefix to each line.
func (p *progress) by(word string) io.Writer { return &lines{progress: p, word: word + ": "} }

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
