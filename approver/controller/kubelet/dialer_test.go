package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(port int32, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return n
}

// A node cannot have somebody call anything but one other machine's kubelet.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node *corev1.Node
		want []string
	}{
		"its port":           {node(10251, "192.0.2.7"), []string{"192.0.2.7:10251"}},
		"the usual port":     {node(0, "192.0.2.7"), []string{"192.0.2.7:10250"}},
		"dual stack":         {node(0, "192.0.2.7", "2001:db8::7"), []string{"192.0.2.7:10250", "[2001:db8::7]:10250"}},
		"mapped":             {node(0, "::ffff:192.0.2.7"), []string{"192.0.2.7:10250"}},
		"itself":             {node(0, "127.0.0.1", "::1", "::ffff:127.0.0.1"), nil},
		"nobody":             {node(0, "0.0.0.0", "::"), nil},
		"many":               {node(0, "224.0.0.1", "ff02::1", "255.255.255.255"), nil},
		"link-local":         {node(0, "169.254.169.254", "fe80::1"), nil},
		"a name":             {node(0, "metadata.internal"), nil},
		"more than it needs": {node(0, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"), []string{"192.0.2.1:10250", "192.0.2.2:10250", "192.0.2.3:10250", "192.0.2.4:10250"}},
		"external addresses": {&corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.7"}, {Type: corev1.NodeHostName, Address: "192.0.2.8"}}}}, nil},
	} {
		if diff := cmp.Diff(test.want, Addresses(test.node)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := (&Dialer{}).Present(t.Context(), node(0, "127.0.0.1")); !errors.Is(err, ErrAddress) {
		t.Errorf("a node that says it is this machine: %v, want ErrAddress", err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:worker-1"}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listen has a server answer every connection and returns a dialer that gets there, whatever it calls.
func listen(t *testing.T, limit time.Duration, answer func(net.Conn)) *Dialer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	t.Cleanup(answering.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answering.Add(1)
			go func() {
				defer answering.Done()
				defer func() { _ = conn.Close() }()
				answer(conn)
			}()
		}
	}()
	return &Dialer{Limit: limit, dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
	}}
}

func handshake(t *testing.T) func(net.Conn) {
	config := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	return func(conn net.Conn) {
		server := tls.Server(conn, config)
		_ = server.Handshake()        // the other side tells
		_, _ = server.Read([]byte{0}) // until it hangs up
	}
}

// hang says nothing until the other side gives up.
func hang(conn net.Conn) {
	for buffer := make([]byte, 1024); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(net.Conn)
		want   error
	}{
		"answers": {handshake(t), nil},
		"hangs":   {hang, ErrUnreachable},
		"closes":  {func(net.Conn) {}, ErrUnreachable},
		"speaks something else": {func(conn net.Conn) {
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\n"))
			hang(conn)
		}, ErrUnreachable},
		"drips": {func(conn net.Conn) {
			for _, err := conn.Write([]byte{22}); err == nil; _, err = conn.Write([]byte{3}) {
			}
		}, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 300 * time.Millisecond
			d := listen(t, limit, test.answer)
			if name == "answers" {
				d.Limit = time.Minute
			}
			chain, err := d.Present(t.Context(), node(0, "192.0.2.7"))
			if !errors.Is(err, test.want) || (err == nil) != (len(chain) == 1) {
				t.Errorf("%d certificates, %v; want %v", len(chain), err, test.want)
			}
		})
	}
}

// The limit is that of a call, not of an address; and a caller who is gone waits for nobody.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := listen(t, 200*time.Millisecond, hang)
	started := time.Now()
	if _, err := d.Present(t.Context(), node(0, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a kubelet that hangs: %v", err)
	}
	if took := time.Since(started); took < 200*time.Millisecond || took > 20*time.Second {
		t.Errorf("it was given up after %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Present(ctx, node(0, "192.0.2.1")); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who is gone: %v", err)
	}
}
