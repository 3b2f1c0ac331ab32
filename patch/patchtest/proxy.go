package patchtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a TCP proxy in front of the API server that can be cut, for one process among several: then it refuses connections.
type Proxy struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

// Proxy starts a Proxy for the test.
func (s *APIServer) Proxy(t testing.TB) *Proxy {
	t.Helper()
	host := s.Config(t, "line").Host
	target, err := url.Parse(host)
	NoError(t, err)
	if target.Host == "" {
		target = &url.URL{Host: host}
	}
	l := &Proxy{target: target.Host, address: "127.0.0.1:0"}
	l.Restore(t)
	t.Cleanup(l.Cut)
	return l
}

// Address returns its URL, for AccountKubeconfig.
func (l *Proxy) Address() string { return "https://" + l.address }

// Cut resets every connection and refuses new ones.
func (l *Proxy) Cut() {
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

// Restore accepts connections again, at the same address.
func (l *Proxy) Restore(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	// An outgoing connection of any process may use the port.
	Eventually(t, "the port is free", func() (err error) {
		l.listener, err = net.Listen("tcp", l.address)
		return err
	})
	l.address = l.listener.Addr().String()
	l.conns = map[net.Conn]bool{}
	go l.serve(t, l.listener)
}

func (l *Proxy) serve(t testing.TB, listener net.Listener) {
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

// keep stores connections for Cut, or closes them if the line was cut since they were accepted, and reports whether it stored them.
func (l *Proxy) keep(listener net.Listener, conns ...net.Conn) bool {
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
