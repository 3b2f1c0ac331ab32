package patchtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Line is a TCP connection to the API server that can be cut and mended, for one process among several. Cut, it refuses connections as an
// API server does that is not there.
type Line struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

// Line starts one, until the test ends.
func (s *APIServer) Line(t testing.TB) *Line {
	t.Helper()
	host := s.Config(t, "line").Host
	target, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	if target.Host == "" {
		target = &url.URL{Host: host}
	}
	l := &Line{target: target.Host, address: "127.0.0.1:0"}
	l.Mend(t)
	t.Cleanup(l.Cut)
	return l
}

// Address is its near end, for AccountKubeconfig.
func (l *Line) Address() string { return "https://" + l.address }

// Cut breaks every connection with a reset and refuses new ones.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close() // it only stops listening
		l.listener = nil
	}
	for conn := range l.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		_ = conn.Close() // some are closed already
	}
	l.conns = nil
}

// Mend lets connections through again, at the same address.
func (l *Line) Mend(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	// Anybody's outgoing connection may have the port for a moment.
	Eventually(t, "the line can be mended", func() (err error) {
		l.listener, err = net.Listen("tcp", l.address)
		return err
	})
	l.address = l.listener.Addr().String()
	l.conns = map[net.Conn]bool{}
	go l.serve(t, l.listener)
}

func (l *Line) serve(t testing.TB, listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.target)
		if err != nil {
			t.Errorf("connecting to the API server: %v", err)
			_ = from.Close() // the client sees it
			continue
		}
		if !l.keep(listener, from, to) {
			continue
		}
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1]) // ends when either side does
				_, _ = pair[0].Close(), pair[1].Close()
			}()
		}
	}
}

// keep remembers connections so that they can be cut; what was accepted before the cut is closed at once.
func (l *Line) keep(listener net.Listener, conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		if l.listener != listener {
			_ = conn.Close() // the client sees it
			continue
		}
		l.conns[conn] = true
	}
	return l.listener == listener
}
