// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
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
// traffic.Interval, and connects again at once when the connection ends.
type socket struct {
	config *websocket.Config
	// limit is for an answer.
	limit time.Duration

	mu sync.Mutex
	// problem is why the connection is not usable; it is usable after the first message has been answered.
	problem error
	outages []traffic.Outage
}

var (
	errConnecting = errors.New("no message has been answered yet")
	errAnswer     = errors.New("another answer")
)

// openSocket connects to a URL of the scheme ws until stop is called.
func openSocket(ctx context.Context, url string, limit time.Duration) (s *socket, stop func(), err error) {
	config, err := websocket.NewConfig(url, "http://localhost/")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s = &socket{config: config, limit: limit, problem: errConnecting}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			opened, err := s.use(ctx)
			if ctx.Err() == nil {
				s.ended(opened, err)
			}
			if !opened {
				pause(ctx)
			}
		}
	}()
	return s, func() { cancel(); <-done }, nil
}

func pause(ctx context.Context) {
	over := time.NewTimer(traffic.Interval)
	defer over.Stop()
	select {
	case <-ctx.Done():
	case <-over.C:
	}
}

// use connects and sends messages until the connection ends, or an answer is missing or wrong. It reports whether one
// was answered.
func (s *socket) use(ctx context.Context) (opened bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	connection, err := s.config.DialContext(dialing)
	if err != nil {
		return false, err
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	for i := 0; ; i++ {
		sent, answer := time.Now(), ""
		err := errors.Join(connection.SetDeadline(sent.Add(s.limit)), websocket.Message.Send(connection, strconv.Itoa(i)))
		if err == nil {
			err = websocket.Message.Receive(connection, &answer)
		}
		if err == nil && answer != strconv.Itoa(i) {
			err = fmt.Errorf("%w: %.40q", errAnswer, answer)
		}
		if err != nil {
			return i > 0, err
		}
		s.answered()
		// Until the next message nothing arrives, but a connection that is closed is noticed at once.
		err = errors.Join(connection.SetReadDeadline(sent.Add(traffic.Interval)), websocket.Message.Receive(connection, &answer))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return true, errors.Join(err, errAnswer)
		}
	}
}

// ended begins an outage after a connection that was usable, and counts an attempt that failed.
func (s *socket) ended(opened bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = err
	if opened {
		s.outages = append(s.outages, traffic.Outage{From: time.Now(), Problem: err.Error()})
	} else if last := len(s.outages) - 1; last >= 0 {
		s.outages[last].Failed++
	}
}

func (s *socket) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.outages) - 1; last >= 0 && s.problem != nil {
		s.outages[last].To = time.Now()
	}
	s.problem = nil
}

// usable returns why messages are not answered.
func (s *socket) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// since returns the periods without a usable connection that began then or later. From is when the connection ended, To
// when the first message of the next one was answered, and Failed the number of attempts in between.
func (s *socket) since(begin time.Time) []traffic.Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.outages), func(o traffic.Outage) bool { return o.From.Before(begin) })
}

func TestSocket(t *testing.T) {
	echo := func(connection *websocket.Conn) { _, _ = io.Copy(connection, connection) }
	// once answers the first message only, and then closes the connection.
	once := func(connection *websocket.Conn) { _, _ = io.CopyN(connection, connection, 1) }
	refuse := func(*websocket.Conn) {}
	for name, test := range map[string]struct {
		// handlers are for one connection after the other, the last one for all others.
		handlers []func(*websocket.Conn)
		// failed is the number of failed attempts in the outage, and problem why the client cannot use the connection at last.
		outages, failed int
		problem         string
	}{
		"usable":                  {handlers: []func(*websocket.Conn){echo}},
		"closed once":             {handlers: []func(*websocket.Conn){once, echo}, outages: 1},
		"closed, refused, opened": {handlers: []func(*websocket.Conn){once, refuse, refuse, echo}, outages: 1, failed: 2},
		"silent":                  {handlers: []func(*websocket.Conn){func(c *websocket.Conn) { _, _ = io.Copy(io.Discard, c) }}, problem: "timeout"},
		"another answer": {
			handlers: []func(*websocket.Conn){func(c *websocket.Conn) { _, _ = c.Write([]byte("9")); _, _ = io.Copy(io.Discard, c) }},
			problem:  errAnswer.Error(),
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
				g.Eventually(s.usable).WithTimeout(20 * time.Second).Should(MatchError(ContainSubstring(test.problem)))
				return
			}
			g.Eventually(s.usable).WithTimeout(20 * time.Second).Should(Succeed())
			g.Eventually(func() []traffic.Outage { return s.since(begin) }).WithTimeout(20 * time.Second).Should(HaveLen(test.outages))
			g.Eventually(s.usable).WithTimeout(20 * time.Second).Should(Succeed())
			for _, outage := range s.since(begin) {
				g.Expect(outage.Failed).To(Equal(test.failed))
				g.Expect(outage.To).To(BeTemporally(">", outage.From))
				g.Expect(outage.Problem).NotTo(BeEmpty())
			}
			g.Expect(s.since(time.Now())).To(BeEmpty())
		})
	}
}
