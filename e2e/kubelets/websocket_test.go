// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"

	"github.com/solonode/sno/conformance/traffic"
)

// socket is a client that keeps one WebSocket to a server that returns what it receives. It sends a message every
// traffic.Interval, and connects again at once when one is not answered. Each attempt is a sample.
type socket struct {
	config *websocket.Config
	// limit is for a connection, and for an answer.
	limit      time.Duration
	connection *websocket.Conn // nil without one

	mu      sync.Mutex
	samples []traffic.Sample
}

// openSocket connects to a URL of the scheme ws until stop is called.
func openSocket(ctx context.Context, url string, limit time.Duration) (s *socket, stop func(), err error) {
	config, err := websocket.NewConfig(url, "http://localhost/")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s = &socket{config: config, limit: limit}
	done := make(chan struct{})
	go func() {
		defer close(done)
		next := time.NewTicker(traffic.Interval)
		defer next.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			sample := traffic.Sample{Sent: time.Now()}
			err := s.exchange(ctx, strconv.Itoa(i))
			if err != nil {
				sample.Problem = err.Error()
			}
			sample.Done = time.Now()
			s.mu.Lock()
			s.samples = append(s.samples, sample)
			again := len(s.samples) > 1 && s.samples[len(s.samples)-2].Problem != ""
			s.mu.Unlock()
			if err == nil || again { // the first failure is followed by a new connection at once
				select {
				case <-next.C:
				case <-ctx.Done():
				}
			}
		}
	}()
	return s, func() { cancel(); <-done }, nil
}

// exchange sends a message and receives it again. After a failure the next one needs a new connection.
func (s *socket) exchange(ctx context.Context, message string) (err error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if s.connection == nil {
		if s.connection, err = s.config.DialContext(limited); err != nil {
			return err
		}
	}
	connection := s.connection
	defer context.AfterFunc(limited, func() { _ = connection.Close() })()
	answer := ""
	if err = websocket.Message.Send(connection, message); err == nil {
		err = websocket.Message.Receive(connection, &answer)
	}
	if err == nil && answer != message {
		err = fmt.Errorf("another answer: %.40q", answer) //nolint:err113 // it is only shown
	}
	if err != nil {
		_ = connection.Close()
		s.connection = nil
	}
	return err
}

// usable returns why the last message was not answered; empty if it was.
func (s *socket) usable() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return "no message has been sent yet"
	}
	return s.samples[len(s.samples)-1].Problem
}

// since returns the periods without a usable connection that began then or later. The first failed message of each is
// from when the connection ended, and the others are attempts after it.
func (s *socket) since(begin time.Time) []traffic.Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return traffic.Outages(slices.DeleteFunc(slices.Clone(s.samples), func(sample traffic.Sample) bool { return sample.Sent.Before(begin) }))
}

func TestSocket(t *testing.T) {
	echo := func(connection *websocket.Conn) { _, _ = io.Copy(connection, connection) }
	// once answers the first message only, and then closes the connection.
	once := func(connection *websocket.Conn) { _, _ = io.CopyN(connection, connection, 1) }
	refuse := func(*websocket.Conn) {}
	for name, test := range map[string]struct {
		// handlers are for one connection after the other, the last one for all others.
		handlers []func(*websocket.Conn)
		// failed is the number of failed messages in the outage, and problem why the client cannot use the connection at last.
		outages, failed int
		problem         string
	}{
		"usable":                  {handlers: []func(*websocket.Conn){echo}},
		"closed once":             {handlers: []func(*websocket.Conn){once, echo}, outages: 1, failed: 1},
		"closed, refused, opened": {handlers: []func(*websocket.Conn){once, refuse, refuse, echo}, outages: 1, failed: 3},
		"silent":                  {handlers: []func(*websocket.Conn){func(c *websocket.Conn) { _, _ = io.Copy(io.Discard, c) }}, problem: "closed network connection"},
		"another answer": {
			handlers: []func(*websocket.Conn){func(c *websocket.Conn) { _, _ = c.Write([]byte("9")); _, _ = io.Copy(io.Discard, c) }}, problem: "another answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, connections := NewWithT(t), make(chan func(*websocket.Conn), len(test.handlers))
			for _, handler := range test.handlers {
				connections <- handler
			}
			server := httptest.NewServer(websocket.Handler(func(connection *websocket.Conn) {
				handle := <-connections
				if len(connections) == 0 {
					connections <- handle
				}
				handle(connection)
			}))
			t.Cleanup(server.Close)
			begin := time.Now()
			s, stop, err := openSocket(t.Context(), strings.Replace(server.URL, "http:", "ws:", 1), time.Second)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(stop)
			if test.problem != "" {
				g.Eventually(s.usable).WithTimeout(20 * time.Second).Should(ContainSubstring(test.problem))
				return
			}
			g.Eventually(func() []traffic.Outage { return s.since(begin) }).WithTimeout(20 * time.Second).Should(HaveLen(test.outages))
			g.Eventually(s.usable).WithTimeout(20 * time.Second).Should(BeEmpty())
			for _, outage := range s.since(begin) {
				g.Expect(outage.Failed).To(Equal(test.failed))
				g.Expect(outage.To).To(BeTemporally(">", outage.From))
			}
			g.Expect(s.since(time.Now())).To(BeEmpty())
		})
	}
}
