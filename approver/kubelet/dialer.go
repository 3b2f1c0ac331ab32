// SPDX-License-Identifier: Apache-2.0

// Package kubelet reads the serving certificate of a node's kubelet.
package kubelet

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	callLimit    = 5 * time.Second
	defaultPort  = 10250 // of a kubelet whose node reports none
	maxAddresses = 4     // a node writes its own addresses; a dual-stack node has two
)

// ErrUnreachable is returned when none of the node's internal IPs answers as a TLS server in time, or none can be
// called.
var ErrUnreachable = errors.New("the kubelet does not answer")

// Dialer calls kubelets. The zero value is ready to use.
type Dialer struct {
	limit time.Duration // set by tests, like dial
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// ServingCertificate returns the certificate chain that the kubelet presents at the first internal IP that answers,
// leaf first. The handshake proves that the server has the leaf's key; the caller verifies the chain. An error is
// ErrUnreachable or the context's.
func (d *Dialer) ServingCertificate(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
	addresses := addressesOf(node)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: the node has no internal IP that can be called", ErrUnreachable)
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(d.limit, callLimit))
	defer cancel()
	var errs []error
	for _, address := range addresses {
		chain, err := d.present(limited, address, node.Name)
		if err == nil {
			return chain, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", address, err))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(errs...))
}

func (d *Dialer) present(ctx context.Context, address, name string) ([]*x509.Certificate, error) {
	dial := d.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// Package requests verifies the chain, by stricter rules.
	client := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: true})
	defer func() { _ = client.Close() }() // nothing was sent that could be lost
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates, nil
}

// addressesOf returns the node's internal IPs with the kubelet's port, except those that lead to this machine or to
// several machines.
func addressesOf(node *corev1.Node) []string {
	port := int(cmp.Or(node.Status.DaemonEndpoints.KubeletEndpoint.Port, defaultPort))
	var out []string
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeInternalIP || len(out) == maxAddresses {
			continue
		}
		ip, err := netip.ParseAddr(address.Address)
		if err != nil {
			continue
		}
		if ip = ip.Unmap(); ip.IsGlobalUnicast() {
			out = append(out, net.JoinHostPort(ip.String(), strconv.Itoa(port)))
		}
	}
	return out
}
