package kubelet

import (
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
	// DefaultLimit bounds one call of a kubelet, from the first packet to the end of the handshake.
	DefaultLimit = 5 * time.Second
	// DefaultPort is that of a kubelet whose node does not say another one.
	DefaultPort = 10250
	// maxAddresses is how many internal addresses of a node are tried. A dual-stack node has two; the list is the kubelet's own word.
	maxAddresses = 4
)

var (
	// ErrAddress is returned for a node without an internal IP that a kubelet of another machine could have.
	ErrAddress = errors.New("the node has no internal IP that can be called")
	// ErrUnreachable is returned when none of the node's internal IPs answers as a TLS server in time.
	ErrUnreachable = errors.New("the kubelet does not answer")
)

// Dialer calls kubelets. The zero value is ready to use.
type Dialer struct {
	// Limit bounds one call; zero means DefaultLimit.
	Limit time.Duration
	// dial is replaced by tests.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Present is the chain that the kubelet of a node presents, leaf first, from the first internal IP that answers. Nothing is verified
// but that the server has the leaf's key. An error is ErrAddress, ErrUnreachable, or the context's.
func (d *Dialer) Present(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
	addresses := Addresses(node)
	if len(addresses) == 0 {
		return nil, ErrAddress
	}
	limit := d.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
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
	client := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: name,
		// What is presented is proven or not by who asked, by rules that the standard verification does not have; see package approver.
		InsecureSkipVerify: true,
	})
	defer func() { _ = client.Close() }() // nothing was sent that could be lost
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates, nil
}

// Addresses are where the kubelet of the node can be called: its internal IPs with the port that it reports. A node writes its own
// addresses, so one that would lead to the caller's machine or to more than one machine is not called.
func Addresses(node *corev1.Node) []string {
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port == 0 {
		port = DefaultPort
	}
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
