// SPDX-License-Identifier: Apache-2.0

package patchtest

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
func (f *CrashInjector) Wrap(next http.RoundTripper) http.RoundTripper { return transport{f, next} }

type transport struct {
	*CrashInjector
	next http.RoundTripper
}

// Reset starts a new process. Delayed writes stay.
func (f *CrashInjector) Reset() { f.set(0, CrashBeforeSend, false) }

// CrashAt makes the process crash at the request of that number, counted from 1.
func (f *CrashInjector) CrashAt(at int, mode CrashMode) { f.set(at, mode, false) }

// CrashAtWrite is CrashAt without counting reads.
func (f *CrashInjector) CrashAtWrite(at int, mode CrashMode) { f.set(at, mode, true) }

func (f *CrashInjector) set(left int, mode CrashMode, onlyWrites bool) {
	f.locked(func() {
		f.left, f.mode, f.onlyWrites, f.crashed, f.before, f.unreadable = left, mode, onlyWrites, false, nil, ""
	})
}

func (f *CrashInjector) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// BeforeRequest calls the function before each request that is sent, concurrently.
func (f *CrashInjector) BeforeRequest(do func(*http.Request)) { f.locked(func() { f.before = do }) }

// FailReads fails reads whose path contains the text; empty for none.
func (f *CrashInjector) FailReads(path string) { f.locked(func() { f.unreadable = path }) }

// Crashed reports whether the process has crashed.
func (f *CrashInjector) Crashed() (crashed bool) {
	f.locked(func() { crashed = f.crashed })
	return crashed
}

// DelayedWrites returns the number of delayed writes.
func (f *CrashInjector) DelayedWrites() (n int) {
	f.locked(func() { n = len(f.delayed) })
	return n
}

// DeliverDelayed sends the delayed writes.
func (f *CrashInjector) DeliverDelayed() {
	var delayed []func()
	f.locked(func() { delayed, f.delayed = f.delayed, nil })
	for _, send := range delayed {
		send()
	}
}

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	read := r.Method == http.MethodGet
	f.mu.Lock()
	before, unreadable, mode, isCrashed, crashes := f.before, f.unreadable, f.mode, f.crashed, false
	if !isCrashed && f.left > 0 && (!read || !f.onlyWrites) {
		f.left--
		crashes = f.left == 0
		f.crashed = crashes
	}
	f.mu.Unlock()
	switch {
	case unreadable != "" && read && strings.Contains(r.URL.Path, unreadable):
		return nil, ErrCrash
	case isCrashed, crashes && mode == CrashBeforeSend, crashes && mode == CrashDelayedWrite && read:
		return nil, ErrCrash
	case crashes && mode == CrashDelayedWrite:
		return nil, f.hold(r)
	}
	if before != nil {
		before(r)
	}
	answer, err := f.next.RoundTrip(r)
	if crashes && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // the API server has processed the request
		_ = answer.Body.Close()
		return nil, ErrCrash
	}
	return answer, err
}

func (f transport) hold(r *http.Request) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return err
		}
	}
	held := r.Clone(context.WithoutCancel(r.Context()))
	held.Body = io.NopCloser(bytes.NewReader(body))
	f.locked(func() {
		f.delayed = append(f.delayed, func() {
			if answer, err := f.next.RoundTrip(held); err == nil {
				_ = answer.Body.Close()
			}
		})
	})
	return ErrCrash
}
