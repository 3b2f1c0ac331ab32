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

// ErrCrash is what a process gets for its requests that has died of a Fuse.
var ErrCrash = errors.New("the controller crashed")

// Death is what becomes of the request at which a process dies.
type Death int

// The ways to die.
const (
	NeverSent Death = iota
	CarriedOut
	// ArrivesLate means that it is on its way for as long as the test likes. A read that nobody waits for is never sent.
	ArrivesLate
	// Deaths is how many there are.
	Deaths
)

// Fuse ends a process at one of its requests: that one ends as its death says, and all later ones fail. The zero value never blows.
type Fuse struct {
	next http.RoundTripper

	mu         sync.Mutex
	left       int // requests until it blows; 0 for never
	death      Death
	blown      bool
	onlyWrites bool
	late       []func()
	before     func(*http.Request)
	unreadable string
}

// Wrap is for rest.Config.Wrap.
func (f *Fuse) Wrap(next http.RoundTripper) http.RoundTripper {
	f.next = next
	return f
}

// Reset is a new process, which nothing happens to. Requests that are still on their way stay so.
func (f *Fuse) Reset() { f.set(0, NeverSent, false) }

// Blow has the process die at its request of that number, counted from now, beginning with 1.
func (f *Fuse) Blow(at int, death Death) { f.set(at, death, false) }

// BlowAtWrite is Blow, but reads do not count.
func (f *Fuse) BlowAtWrite(at int, death Death) { f.set(at, death, true) }

func (f *Fuse) set(left int, death Death, onlyWrites bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.death, f.onlyWrites, f.blown, f.before, f.unreadable = left, death, onlyWrites, false, nil, ""
}

// Before has something called before every request that is sent, also of several at once.
func (f *Fuse) Before(do func(*http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = do
}

// Unreadable refuses reads of what has this in its path; empty for none.
func (f *Fuse) Unreadable(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unreadable = path
}

// Blown tells whether the process has died.
func (f *Fuse) Blown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown
}

// Late is how many requests are still on their way.
func (f *Fuse) Late() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.late)
}

// Deliver has them arrive.
func (f *Fuse) Deliver() {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, send := range late {
		send()
	}
}

// RoundTrip implements http.RoundTripper.
func (f *Fuse) RoundTrip(r *http.Request) (*http.Response, error) {
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
	case dead, dies && death == NeverSent, dies && death == ArrivesLate && read:
		return nil, ErrCrash
	case dies && death == ArrivesLate:
		return nil, f.hold(r)
	}
	if before != nil {
		before(r)
	}
	answer, err := f.next.RoundTrip(r)
	if dies && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // nobody is there to read it
		_ = answer.Body.Close()
		return nil, ErrCrash
	}
	return answer, err
}

func (f *Fuse) hold(r *http.Request) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return err
		}
	}
	held := r.Clone(context.WithoutCancel(r.Context()))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, func() {
		held.Body = io.NopCloser(bytes.NewReader(body))
		if answer, err := f.next.RoundTrip(held); err == nil {
			_ = answer.Body.Close()
		}
	})
	return ErrCrash
}
