// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/e2e/framework/suite"
)

// Address returns an address of this machine other than loopback, which nodes may not have.
func Address() net.IP {
	GinkgoHelper()
	for _, address := range suite.Must(net.InterfaceAddrs()) {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP
		}
	}
	Fail("this machine has no IPv4 address other than loopback")
	return nil
}

// Kubelet is a fake of a kubelet's TLS endpoint, whose behaviour may be changed while it runs.
type Kubelet struct {
	listener net.Listener
	mu       sync.Mutex
	answer   func() (*tls.Certificate, error)
	called   int
	ended    chan struct{}
}

// StartKubelet starts one at the address, on a free port, until the end of the spec. It has no certificate yet.
func StartKubelet(at net.IP) *Kubelet {
	GinkgoHelper()
	k := &Kubelet{listener: suite.Must(net.Listen("tcp", net.JoinHostPort(at.String(), "0"))), ended: make(chan struct{})}
	k.RefuseConnections()
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			k.mu.Lock()
			k.called++
			answer := k.answer
			k.mu.Unlock()
			return answer()
		}},
	}
	go func() { _ = server.ServeTLS(k.listener, "", "") }()
	DeferCleanup(func() error {
		close(k.ended)
		return server.Close()
	})
	return k
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

func (k *Kubelet) set(answer func() (*tls.Certificate, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = answer
}

// SetCertificate makes it serve with the certificate.
func (k *Kubelet) SetCertificate(certificate tls.Certificate) {
	k.set(func() (*tls.Certificate, error) { return &certificate, nil })
}

// Hang makes it accept connections without a response.
func (k *Kubelet) Hang() {
	k.set(func() (*tls.Certificate, error) {
		<-k.ended
		return nil, errNoCertificate
	})
}

var errNoCertificate = errors.New("the kubelet has no certificate yet")

// RefuseConnections makes it end connections at once, like a kubelet without a serving certificate.
func (k *Kubelet) RefuseConnections() {
	k.set(func() (*tls.Certificate, error) { return nil, errNoCertificate })
}
