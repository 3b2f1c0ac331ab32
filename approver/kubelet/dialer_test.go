// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
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

// Addresses that no kubelet on another machine has are skipped.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node *corev1.Node
		want []string
	}{
		"its port":     {node(10251, "192.0.2.7"), []string{"192.0.2.7:10251"}},
		"default port": {node(0, "192.0.2.7"), []string{"192.0.2.7:10250"}},
		"dual stack":   {node(0, "192.0.2.7", "2001:db8::7"), []string{"192.0.2.7:10250", "[2001:db8::7]:10250"}},
		"mapped":       {node(0, "::ffff:192.0.2.7"), []string{"192.0.2.7:10250"}},
		"loopback":     {node(0, "127.0.0.1", "::1", "::ffff:127.0.0.1"), nil},
		"unspecified":  {node(0, "0.0.0.0", "::"), nil},
		"multicast":    {node(0, "224.0.0.1", "ff02::1", "255.255.255.255"), nil},
		"link-local":   {node(0, "169.254.169.254", "fe80::1"), nil},
		"a name":       {node(0, "metadata.internal"), nil},
		"too many": {node(0, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"),
			[]string{"192.0.2.1:10250", "192.0.2.2:10250", "192.0.2.3:10250", "192.0.2.4:10250"}},
		"external": {&corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeExternalIP, Address: "192.0.2.7"}, {Type: corev1.NodeHostName, Address: "192.0.2.8"}}}}, nil},
	} {
		if diff := cmp.Diff(test.want, addressesOf(test.node)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := (&Dialer{}).ServingCertificate(t.Context(), node(0, "127.0.0.1")); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no internal IP") {
		t.Errorf("a node without a usable address: %v", err)
	}
}

// answered returns a dialer whose connections are served by answer.
func answered(t *testing.T, limit time.Duration, answer func(net.Conn)) *Dialer {
	t.Helper()
	var answering sync.WaitGroup
	t.Cleanup(answering.Wait)
	return &Dialer{limit: limit, dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		answering.Go(func() {
			defer func() { _ = server.Close() }()
			answer(server)
		})
		return client, nil
	}}
}

func handshake(t *testing.T) func(net.Conn) {
	t.Helper()
	listener := httptest.NewTLSServer(nil)
	t.Cleanup(listener.Close)
	return func(conn net.Conn) {
		server := tls.Server(conn, listener.TLS)
		_ = server.Handshake()        // the client reports its error
		_, _ = server.Read([]byte{0}) // until the client closes the connection
	}
}

func hang(conn net.Conn) {
	for buffer := make([]byte, 1024); ; {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func TestServingCertificate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(net.Conn)
		want   error
	}{
		"answers": {handshake(t), nil},
		"hangs":   {hang, ErrUnreachable},
		"closes":  {func(net.Conn) {}, ErrUnreachable},
		"answers in HTTP": {func(conn net.Conn) {
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\n"))
			hang(conn)
		}, ErrUnreachable},
		"sends single bytes forever": {func(conn net.Conn) {
			for _, err := conn.Write([]byte{22}); err == nil; _, err = conn.Write([]byte{3}) {
			}
		}, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 300 * time.Millisecond
			if name == "answers" {
				limit = time.Minute
			}
			d := answered(t, limit, test.answer)
			chain, err := d.ServingCertificate(t.Context(), node(0, "192.0.2.7"))
			if !errors.Is(err, test.want) || (err == nil) != (len(chain) > 0) {
				t.Errorf("%d certificates, %v; want %v", len(chain), err, test.want)
			}
		})
	}
}

// The time limit is for a call, not for an address. A canceled call ends at once.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := answered(t, 200*time.Millisecond, hang)
	started := time.Now()
	if _, err := d.ServingCertificate(t.Context(), node(0, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a kubelet that hangs: %v", err)
	}
	if took := time.Since(started); took < 200*time.Millisecond || took > 20*time.Second {
		t.Errorf("it ended after %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.ServingCertificate(ctx, node(0, "192.0.2.1")); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call: %v", err)
	}
}
