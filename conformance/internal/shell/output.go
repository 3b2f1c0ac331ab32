// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

// readLimit is for the rest of the output: a process that has left the group can keep the pipe open.
const readLimit = time.Second

type output struct {
	readers, writers []*os.File
	reading          sync.WaitGroup

	mu   sync.Mutex
	last string
}

// pipe returns a file whose lines go to each.
func (o *output) pipe(each func(string)) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	o.readers, o.writers = append(o.readers, reader), append(o.writers, writer)
	o.reading.Go(func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			o.mu.Lock()
			if o.last = lines.Text(); each != nil {
				each(o.last)
			}
			o.mu.Unlock()
		}
	})
	return writer, nil
}

// close reads what is left and returns the last line.
func (o *output) close() string {
	for _, file := range o.writers {
		_ = file.Close()
	}
	for _, file := range o.readers {
		_ = file.SetReadDeadline(time.Now().Add(readLimit))
	}
	o.reading.Wait()
	for _, file := range o.readers {
		_ = file.Close()
	}
	return o.last
}
