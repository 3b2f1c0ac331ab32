// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// reportEvery is the shortest time between two lines of progress: a kernel prints hundreds in a second.
const reportEvery = 2 * time.Second

// console keeps what a machine prints since it was turned on.
type console struct {
	log      io.Writer
	progress io.Writer
	name     string
	started  time.Time

	mu       sync.Mutex
	text     bytes.Buffer
	changed  chan struct{} // closed by the next Write
	reported time.Time
}

func newConsole(name string, log, progress io.Writer) *console {
	return &console{name: name, log: log, progress: progress, started: time.Now(), changed: make(chan struct{})}
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p)
	close(c.changed)
	c.changed = make(chan struct{})
	if now := time.Now(); now.Sub(c.reported) >= reportEvery && bytes.ContainsRune(p, '\n') {
		if line := lastLines(c.text.String(), 1); line != "" {
			c.reported = now
			_, _ = fmt.Fprintf(c.progress, "%5.0fs  %s: %s\n", now.Sub(c.started).Seconds(), c.name, line)
		}
	}
	return c.log.Write(p) //nolint:wrapcheck // it names the file
}

// read returns the text so far, and a channel that is closed when there is more.
func (c *console) read() (string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String(), c.changed
}

// lastLines returns the last complete lines that a person can read, without what moves the cursor of a terminal.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(escapes.ReplaceAllString(line, ""))
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
