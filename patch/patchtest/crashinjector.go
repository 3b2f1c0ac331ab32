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

// ErrCrash is the error of the requests of a process that has crashed.
var ErrCrash = errors.New("the controller crashed")

// CrashMode is what happens to the request at which a process crashes.
type CrashMode int

// The ways to crash.
const (
	CrashBeforeSend CrashMode = iota
	CrashAfterSend
	// CrashDelayedWrite holds a write until DeliverDelayed. A read is never sent.
	CrashDelayedWrite
	// CrashModes is their number.
	CrashModes
)

// CrashInjector makes a process crash at one of its requests, after which all requests fail. The zero value lets all requests pass.
type CrashInjector struct {
	mu         sync.Mutex
	left       int // requests until the crash; 0 for never
	death      CrashMode
	blown      bool
	onlyWrites bool
	late       []func()
	before     func(*http.Request)
	unreadable string
}

// Wrap is for rest.Config.Wrap. Several clients may have one CrashInjector.
func (f *CrashInjector) Wrap(next http.RoundTripper) http.RoundTripper { return fused{f, next} }

// fused is the transport of one client with a CrashInjector.
type fused struct {
	*CrashInjector
	next http.RoundTripper
}

// Reset begins a new process, without anything that was set. Delayed writes stay.
func (f *CrashInjector) Reset() { f.set(0, CrashBeforeSend, false) }

// CrashAt makes the process crash at its request of that number, counted from now, beginning with 1.
func (f *CrashInjector) CrashAt(at int, death CrashMode) { f.set(at, death, false) }

// CrashAtWrite is CrashAt without counting reads.
func (f *CrashInjector) CrashAtWrite(at int, death CrashMode) { f.set(at, death, true) }

func (f *CrashInjector) set(left int, death CrashMode, onlyWrites bool) {
	f.locked(func() {
		f.left, f.death, f.onlyWrites, f.blown, f.before, f.unreadable = left, death, onlyWrites, false, nil, ""
	})
}

func (f *CrashInjector) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// BeforeRequest calls the function before every request that is sent, concurrently with others.
func (f *CrashInjector) BeforeRequest(do func(*http.Request)) { f.locked(func() { f.before = do }) }

// FailReads refuses reads with this in their path; empty for none.
func (f *CrashInjector) FailReads(path string) { f.locked(func() { f.unreadable = path }) }

// Crashed reports whether the process has crashed.
func (f *CrashInjector) Crashed() (blown bool) {
	f.locked(func() { blown = f.blown })
	return blown
}

// DelayedWrites returns the number of requests that DeliverDelayed would send.
func (f *CrashInjector) DelayedWrites() (n int) {
	f.locked(func() { n = len(f.late) })
	return n
}

// DeliverDelayed sends the requests that arrive late.
func (f *CrashInjector) DeliverDelayed() {
	var late []func()
	f.locked(func() { late, f.late = f.late, nil })
	for _, send := range late {
		send()
	}
}

// RoundTrip implements http.RoundTripper.
func (f fused) RoundTrip(r *http.Request) (*http.Response, error) {
	read := r.Method == http.MethodGet
	f.mu.Lock()
	before, unreadable, death, dead, dies := f.before, f.unreadable, f.death, f.blown, false
	if !dead && f.left > 0 && (!read || !f.onlyWrites) {
		f.left--
		dies = f.left == 0
		f.blown = dies
	}
	f.mu.Unlock()
	switch {
	case unreadable != "" && read && strings.Contains(r.URL.Path, unreadable):
		return nil, ErrCrash
	case dead, dies && death == CrashBeforeSend, dies && death == CrashDelayedWrite && read:
		return nil, ErrCrash
	case dies && death == CrashDelayedWrite:
		return nil, f.hold(r)
	}
	if before != nil {
		before(r)
	}
	answer, err := f.next.RoundTrip(r)
	if dies && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // so that the API server has answered
		_ = answer.Body.Close()
		return nil, ErrCrash
	}
	return answer, err
}

func (f fused) hold(r *http.Request) error {
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
		f.late = append(f.late, func() {
			if answer, err := f.next.RoundTrip(held); err == nil {
				_ = answer.Body.Close()
			}
		})
	})
	return ErrCrash
}
