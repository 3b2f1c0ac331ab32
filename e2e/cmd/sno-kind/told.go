package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// told writes what several clusters tell at once, line by line.
type told struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newTold(out io.Writer) *told { return &told{out: out, began: time.Now()} }

// say tells what is done now, and when.
func (t *told) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(t.out, "== %s (%s)\n", fmt.Sprintf(format, args...), time.Since(t.began).Round(time.Second))
}

// by is for somebody whose lines begin with a word.
func (t *told) by(word string) io.Writer { return &lines{told: t, word: word + ": "} }

// lines keeps what is not a whole line yet.
type lines struct {
	told *told
	word string
	rest []byte
}

func (l *lines) Write(text []byte) (int, error) {
	l.told.mu.Lock()
	defer l.told.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.rest = rest
		if _, err := fmt.Fprintf(l.told.out, "%s%s\n", l.word, line); err != nil {
			return 0, err //nolint:wrapcheck // the writer says it all
		}
	}
}
