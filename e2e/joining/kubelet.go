package joining

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// ErrNoAddress says that this machine has no address at which a kubelet could be called.
var ErrNoAddress = errors.New("this machine has no IPv4 address beside loopback")

// Address is one of this machine that is not loopback, which no node may have.
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

// Kubelet answers as one does, as far as TLS goes. How it answers may be changed while it runs.
type Kubelet struct {
	listener net.Listener
	mu       sync.Mutex
	answer   func(net.Conn)
	called   int
}

// StartKubelet has one listen at the address, on a port that is free. Stop ends it.
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
			answer := k.answer
			k.mu.Unlock()
			go func() {
				defer func() { _ = conn.Close() }()
				answer(conn)
			}()
		}
	}()
	return k, nil
}

// Endpoint is where it listens.
func (k *Kubelet) Endpoint() string { return k.listener.Addr().String() }

// Status is that of a node with this kubelet.
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

// Called is how often it was.
func (k *Kubelet) Called() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.called
}

// Stop ends it.
func (k *Kubelet) Stop() { _ = k.listener.Close() }

func (k *Kubelet) set(answer func(net.Conn)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = answer
}

// SetCertificate has it serve with the certificate.
func (k *Kubelet) SetCertificate(certificate tls.Certificate) {
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	k.set(func(conn net.Conn) {
		server := tls.Server(conn, config)
		_ = server.Handshake() // whoever called knows how it went
		drain(server)
	})
}

// Hang has it take calls and say nothing.
func (k *Kubelet) Hang() { k.set(drain) }

// CloseConnections has it hang up at once.
func (k *Kubelet) CloseConnections() { k.set(func(net.Conn) {}) }

// drain reads until the other side hangs up.
func drain(conn net.Conn) {
	for buffer := make([]byte, 1024); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}
