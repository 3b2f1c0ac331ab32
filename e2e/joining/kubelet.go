// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// ErrNoAddress means that this machine has no address for a kubelet.
var ErrNoAddress = errors.New("this machine has no IPv4 address other than loopback")

// Address returns an address of this machine other than loopback, which nodes may not have.
func Address() (net.IP, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP, nil
		}
	}
	return nil, ErrNoAddress
}

// Kubelet is a fake of a kubelet's TLS endpoint, whose behaviour may be changed while it runs.
type Kubelet struct {
	listener net.Listener
	mu       sync.Mutex
	respond  func(net.Conn)
	called   int
}

// StartKubelet starts one at the address, on a free port.
func StartKubelet(at net.IP) (*Kubelet, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(at.String(), "0"))
	if err != nil {
		return nil, fmt.Errorf("listen as a kubelet: %w", err)
	}
	k := &Kubelet{listener: listener}
	k.CloseConnections()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			k.mu.Lock()
			k.called++
			respond := k.respond
			k.mu.Unlock()
			go func() {
				defer func() { _ = conn.Close() }()
				respond(conn)
			}()
		}
	}()
	return k, nil
}

// Endpoint returns its address.
func (k *Kubelet) Endpoint() string { return k.listener.Addr().String() }

// Status returns the status of a node with this kubelet.
func (k *Kubelet) Status() corev1.NodeStatus {
	at, ok := k.listener.Addr().(*net.TCPAddr)
	if !ok {
		return corev1.NodeStatus{}
	}
	return corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.IP.String()}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(at.Port)}},
	}
}

// Called returns how often it was called.
func (k *Kubelet) Called() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.called
}

// Stop closes the port.
func (k *Kubelet) Stop() { _ = k.listener.Close() }

func (k *Kubelet) set(respond func(net.Conn)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.respond = respond
}

// SetCertificate makes it serve with the certificate.
func (k *Kubelet) SetCertificate(certificate tls.Certificate) {
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	k.set(func(conn net.Conn) {
		server := tls.Server(conn, config)
		_ = server.Handshake() // the client reports the error
		drain(server)
	})
}

// Hang makes it accept connections without a response.
func (k *Kubelet) Hang() { k.set(drain) }

// CloseConnections makes it close connections at once.
func (k *Kubelet) CloseConnections() { k.set(func(net.Conn) {}) }

func drain(conn net.Conn) {
	for buffer := make([]byte, 1024); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}
