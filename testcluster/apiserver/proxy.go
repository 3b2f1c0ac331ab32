// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a TCP proxy in front of the API server, for one of several processes. When it is cut it refuses connections.
type Proxy struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

// Proxy starts a Proxy for the test.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	target, err := url.Parse(s.cluster.URL())
	NoError(t, err)
	p := &Proxy{target: target.Host, address: "127.0.0.1:0"}
	p.Restore(t)
	t.Cleanup(p.Cut)
	return p
}

// Address returns the URL of the proxy, for AccountKubeconfig.
func (p *Proxy) Address() string { return "https://" + p.address }

// Cut resets all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close() // it only stops listening
		p.listener = nil
	}
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		_ = conn.Close() // some are closed already
	}
	p.conns = nil
}

// Restore accepts connections again, at the same address.
func (p *Proxy) Restore(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	// An outgoing connection of another process may use the port.
	Eventually(t, "the port is free", func() (err error) {
		p.listener, err = net.Listen("tcp", p.address)
		return err
	})
	p.address = p.listener.Addr().String()
	p.conns = map[net.Conn]bool{}
	go p.serve(t, p.listener)
}

func (p *Proxy) serve(t testing.TB, listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.target)
		if err != nil {
			t.Errorf("connecting to the API server: %v", err)
			_ = from.Close() // the client sees it
			continue
		}
		if !p.keep(listener, from, to) {
			continue
		}
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1]) // ends when either side closes
				_, _ = pair[0].Close(), pair[1].Close()
			}()
		}
	}
}

// keep stores connections for Cut, or closes them and returns false if the proxy was cut in the meantime.
func (p *Proxy) keep(listener net.Listener, conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.listener != listener {
			_ = conn.Close() // the client sees it
			continue
		}
		p.conns[conn] = true
	}
	return p.listener == listener
}
