// SPDX-License-Identifier: Apache-2.0

package websockets

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/solonode/sno/conformance/traffic"
)

const long, limit = 20 * time.Second, time.Second

func answering(t *testing.T, handle func(*websocket.Conn)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(websocket.Handler(handle))
	t.Cleanup(server.Close)
	return server
}

func echo(connection *websocket.Conn) { _, _ = io.Copy(connection, connection) }

func open(t *testing.T, server *httptest.Server) *Client {
	t.Helper()
	c, err := Open(t.Context(), strings.Replace(server.URL, "http:", "ws:", 1), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// outage waits until an outage has ended.
func outage(t *testing.T, c *Client) traffic.Outage {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(pollInterval) {
		if all := c.Outages(time.Time{}); len(all) > 0 && !all[0].To.IsZero() {
			return all[0]
		}
	}
	t.Fatalf("no outage that has ended: %+v", c.Outages(time.Time{}))
	return traffic.Outage{}
}

func TestWebSocket(t *testing.T) {
	connections := make(chan *websocket.Conn, 2)
	c := open(t, answering(t, func(connection *websocket.Conn) {
		connections <- connection
		echo(connection)
	}))
	if err := c.WaitConnected(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	// The client's answer may end the handler, which closes it too.
	if err := (<-connections).Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	cut := outage(t, c)
	if cut.From.Before(before) || cut.Failed != 0 || cut.Problem == "" || len(c.Outages(time.Now())) != 0 {
		t.Errorf("a connection that is closed while the server runs: %+v", cut)
	}
	c.Stop()
	if all := c.Outages(time.Time{}); len(all) != 1 {
		t.Errorf("outages: %+v", all)
	}
}

// The server accepts the second connection and answers only the fourth.
func TestWebSocketCountsFailedAttempts(t *testing.T) {
	connections := 0
	once := make(chan struct{}, 1)
	once <- struct{}{}
	server := answering(t, func(connection *websocket.Conn) {
		<-once
		connections++
		now := connections
		once <- struct{}{}
		switch {
		case now == 1:
			_, _ = io.CopyN(connection, connection, 1)
		case now >= 4:
			echo(connection)
		}
	})
	if cut := outage(t, open(t, server)); cut.Failed != 2 || cut.Length(time.Now()) < traffic.Interval {
		t.Errorf("%+v", cut)
	}
}

func TestWebSocketExpectsAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		handle func(*websocket.Conn)
		want   string
	}{
		"silent":  {func(connection *websocket.Conn) { _, _ = io.Copy(io.Discard, connection) }, errSilent.Error()},
		"another": {func(connection *websocket.Conn) { _, _ = connection.Write([]byte("9")) }, errAnswer.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(t, answering(t, test.handle)).WaitConnected(t.Context(), 2*limit)
			if !errors.Is(err, traffic.ErrLost) || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
	if _, err := Open(t.Context(), ":", limit); err == nil {
		t.Error("a URL that is none")
	}
}
