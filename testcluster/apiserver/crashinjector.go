// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// ErrCrash is the error of requests of a crashed process.
var ErrCrash = errors.New("the controller crashed")

// CrashMode is what happens to the request at which a process crashes.
type CrashMode int

// The modes of a crash.
const (
	CrashBeforeSend CrashMode = iota
	CrashAfterSend
	CrashDelayedWrite // a write is held until DeliverDelayed, a read is not sent
	CrashModes        // the number of modes
)

// CrashInjector makes a process crash at one of its requests. The zero value passes all requests.
type CrashInjector struct {
	mu         sync.Mutex
	left       int // requests until the crash; 0 for never
	mode       CrashMode
	crashed    bool
	onlyWrites bool
	delayed    []func()
	before     func(*http.Request)
	unreadable string
}

// Wrap is for rest.Config.Wrap, of one or several clients.
func (c *CrashInjector) Wrap(next http.RoundTripper) http.RoundTripper { return transport{c, next} }

type transport struct {
	*CrashInjector
	next http.RoundTripper
}

// Reset starts a new process. Delayed writes stay.
func (c *CrashInjector) Reset() { c.set(0, CrashBeforeSend, false) }

// CrashAt makes the process crash at the request of that number, counted from 1.
func (c *CrashInjector) CrashAt(at int, mode CrashMode) { c.set(at, mode, false) }

// CrashAtWrite is CrashAt without counting reads.
func (c *CrashInjector) CrashAtWrite(at int, mode CrashMode) { c.set(at, mode, true) }

func (c *CrashInjector) set(left int, mode CrashMode, onlyWrites bool) {
	c.locked(func() {
		c.left, c.mode, c.onlyWrites, c.crashed, c.before, c.unreadable = left, mode, onlyWrites, false, nil, ""
	})
}

func (c *CrashInjector) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// BeforeRequest calls the function before each request that is sent, concurrently.
func (c *CrashInjector) BeforeRequest(do func(*http.Request)) { c.locked(func() { c.before = do }) }

// FailReads fails reads whose path contains the text; empty for none.
func (c *CrashInjector) FailReads(path string) { c.locked(func() { c.unreadable = path }) }

// Crashed reports whether the process has crashed.
func (c *CrashInjector) Crashed() (crashed bool) {
	c.locked(func() { crashed = c.crashed })
	return crashed
}

// DelayedWrites returns the number of delayed writes.
func (c *CrashInjector) DelayedWrites() (n int) {
	c.locked(func() { n = len(c.delayed) })
	return n
}

// DeliverDelayed sends the delayed writes.
func (c *CrashInjector) DeliverDelayed() {
	var delayed []func()
	c.locked(func() { delayed, c.delayed = c.delayed, nil })
	for _, send := range delayed {
		send()
	}
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	read := r.Method == http.MethodGet
	t.mu.Lock()
	before, unreadable, mode, isCrashed, crashes := t.before, t.unreadable, t.mode, t.crashed, false
	if !isCrashed && t.left > 0 && (!read || !t.onlyWrites) {
		t.left--
		crashes = t.left == 0
		t.crashed = crashes
	}
	t.mu.Unlock()
	switch {
	case unreadable != "" && read && strings.Contains(r.URL.Path, unreadable):
		return nil, ErrCrash
	case isCrashed, crashes && mode == CrashBeforeSend, crashes && mode == CrashDelayedWrite && read:
		return nil, ErrCrash
	case crashes && mode == CrashDelayedWrite:
		return nil, t.hold(r)
	}
	if before != nil {
		before(r)
	}
	answer, err := t.next.RoundTrip(r)
	if crashes && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // the API server has processed the request
		_ = answer.Body.Close()
		return nil, ErrCrash
	}
	return answer, err
}

func (t transport) hold(r *http.Request) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return err
		}
	}
	held := r.Clone(context.WithoutCancel(r.Context()))
	held.Body = io.NopCloser(bytes.NewReader(body))
	t.locked(func() {
		t.delayed = append(t.delayed, func() {
			if answer, err := t.next.RoundTrip(held); err == nil {
				_ = answer.Body.Close()
			}
		})
	})
	return ErrCrash
}
