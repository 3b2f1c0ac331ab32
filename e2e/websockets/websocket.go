// SPDX-License-Identifier: Apache-2.0

// Package websockets measures how long a client of a cluster is without a usable WebSocket.
package websockets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/websocket"

	"github.com/solonode/sno/conformance/traffic"
)

const pollInterval = 20 * time.Millisecond

var (
	errSilent = errors.New("a message had no answer")
	errAnswer = errors.New("another answer")
)

// Client keeps one connection to a server that returns what it receives. It sends a message every traffic.Interval, and
// connects again at once when the connection is closed.
type Client struct {
	config *websocket.Config
	limit  time.Duration
	stop   context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// connected is set after the first message of a connection has been answered.
	connected bool
	outages   []traffic.Outage
	problem   string
}

// Open begins to connect to a URL of the scheme ws until Stop is called. A connection is closed when a message
// is not answered within the limit.
func Open(ctx context.Context, url string, limit time.Duration) (*Client, error) {
	config, err := websocket.NewConfig(url, "http://localhost/")
	if err != nil {
		return nil, fmt.Errorf("open a WebSocket: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Client{config: config, limit: limit, stop: stop, done: make(chan struct{})}
	go w.run(ctx)
	return w, nil
}

// Stop closes the connection.
func (w *Client) Stop() {
	w.stop()
	<-w.done
}

// Outages returns the periods without a usable connection that began at or after that time. From is when the connection
// was closed, To when the first message of the next one was answered, and Failed the number of attempts in between.
func (w *Client) Outages(since time.Time) []traffic.Outage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.outages), func(o traffic.Outage) bool { return o.From.Before(since) })
}

// WaitConnected waits until messages are answered. After timeout it returns traffic.ErrLost with the last problem.
func (w *Client) WaitConnected(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		w.mu.Lock()
		connected, problem := w.connected, w.problem
		w.mu.Unlock()
		if connected {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s for %s: %s", traffic.ErrLost, w.config.Location, timeout, problem)
		case <-again.C:
		}
	}
}

func (w *Client) run(ctx context.Context) {
	defer close(w.done)
	again := time.NewTicker(traffic.Interval)
	defer again.Stop()
	for {
		opened, err := w.use(ctx)
		if ctx.Err() != nil {
			return
		}
		w.record(opened, err)
		if opened {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// record opens an outage for a connection that was usable, and counts an attempt that failed.
func (w *Client) record(opened bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem, w.connected = err.Error(), false
	if opened {
		w.outages = append(w.outages, traffic.Outage{From: time.Now(), Problem: w.problem})
	} else if last := len(w.outages) - 1; last >= 0 {
		w.outages[last].Failed++
	}
}

func (w *Client) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.outages) - 1; last >= 0 && !w.connected {
		w.outages[last].To = time.Now()
	}
	w.connected = true
}

// use connects and sends messages until the connection ends. It reports whether one was answered.
func (w *Client) use(ctx context.Context) (opened bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	connection, err := w.config.DialContext(dialing)
	if err != nil {
		return false, err //nolint:wrapcheck // names the address
	}
	var received atomic.Int64
	var failure error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = w.receive(connection, &received)
	}()
	err = w.send(ctx, connection, &received, ended)
	_ = connection.Close()
	<-ended
	if err == nil {
		err = failure
	}
	return received.Load() > 0, err
}

// receive returns when the connection ends.
func (w *Client) receive(connection *websocket.Conn, received *atomic.Int64) error {
	for i := int64(0); ; i++ {
		var message string
		if err := websocket.Message.Receive(connection, &message); err != nil {
			return err //nolint:wrapcheck // recorded only
		}
		if message != strconv.FormatInt(i, 10) {
			return fmt.Errorf("%w: %.40q", errAnswer, message)
		}
		received.Add(1)
		w.answered()
	}
}

// send returns nil when the connection has ended.
func (w *Client) send(ctx context.Context, connection *websocket.Conn, received *atomic.Int64, ended <-chan struct{}) error {
	every := time.NewTicker(traffic.Interval)
	defer every.Stop()
	for sent := int64(0); ; sent++ {
		if (sent-received.Load())*int64(traffic.Interval) > int64(w.limit) {
			return errSilent
		}
		if err := websocket.Message.Send(connection, strconv.FormatInt(sent, 10)); err != nil {
			return err //nolint:wrapcheck // recorded only
		}
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // not recorded
		case <-ended:
			return nil
		case <-every.C:
		}
	}
}
