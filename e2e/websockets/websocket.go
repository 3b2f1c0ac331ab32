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
	c := &Client{config: config, limit: limit, stop: stop, done: make(chan struct{})}
	go c.run(ctx)
	return c, nil
}

// Stop closes the connection.
func (c *Client) Stop() {
	c.stop()
	<-c.done
}

// Outages returns the periods without a usable connection that began at or after that time. From is when the connection
// was closed, To when the first message of the next one was answered, and Failed the number of attempts in between.
func (c *Client) Outages(since time.Time) []traffic.Outage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.outages), func(o traffic.Outage) bool { return o.From.Before(since) })
}

// WaitConnected waits until messages are answered. After timeout it returns traffic.ErrLost with the last problem.
func (c *Client) WaitConnected(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		c.mu.Lock()
		connected, problem := c.connected, c.problem
		c.mu.Unlock()
		if connected {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s for %s: %s", traffic.ErrLost, c.config.Location, timeout, problem)
		case <-again.C:
		}
	}
}

func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	again := time.NewTicker(traffic.Interval)
	defer again.Stop()
	for {
		opened, err := c.use(ctx)
		if ctx.Err() != nil {
			return
		}
		c.record(opened, err)
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
func (c *Client) record(opened bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem, c.connected = err.Error(), false
	if opened {
		c.outages = append(c.outages, traffic.Outage{From: time.Now(), Problem: c.problem})
	} else if last := len(c.outages) - 1; last >= 0 {
		c.outages[last].Failed++
	}
}

func (c *Client) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.outages) - 1; last >= 0 && !c.connected {
		c.outages[last].To = time.Now()
	}
	c.connected = true
}

// use connects and sends messages until the connection ends. It reports whether one was answered.
func (c *Client) use(ctx context.Context) (opened bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	connection, err := c.config.DialContext(dialing)
	if err != nil {
		return false, err //nolint:wrapcheck // names the address
	}
	var received atomic.Int64
	var failure error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = c.receive(connection, &received)
	}()
	err = c.send(ctx, connection, &received, ended)
	_ = connection.Close()
	<-ended
	if err == nil {
		err = failure
	}
	return received.Load() > 0, err
}

// receive returns when the connection ends.
func (c *Client) receive(connection *websocket.Conn, received *atomic.Int64) error {
	for i := int64(0); ; i++ {
		var message string
		if err := websocket.Message.Receive(connection, &message); err != nil {
			return err //nolint:wrapcheck // recorded only
		}
		if message != strconv.FormatInt(i, 10) {
			return fmt.Errorf("%w: %.40q", errAnswer, message)
		}
		received.Add(1)
		c.answered()
	}
}

// send returns nil when the connection has ended.
func (c *Client) send(ctx context.Context, connection *websocket.Conn, received *atomic.Int64, ended <-chan struct{}) error {
	every := time.NewTicker(traffic.Interval)
	defer every.Stop()
	for sent := int64(0); ; sent++ {
		if (sent-received.Load())*int64(traffic.Interval) > int64(c.limit) {
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
