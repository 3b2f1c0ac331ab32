package controller

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// credentials are with what etcd is asked. The zero value is nothing, for endpoints without TLS.
type credentials struct {
	config *tls.Config
	// id tells two of them apart.
	id string
}

// identify makes an id of what credentials were made of.
func identify(parts ...[]byte) string {
	all := sha256.New()
	for _, part := range parts {
		one := sha256.Sum256(part)
		all.Write(one[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

// connections are those to etcd. A change of topology asks it before every write, and a new connection takes longer than the answer, most of all while
// everything on the node reacts to the same change. The zero value has none. It is safe for concurrent use.
//
// Nothing that is known of a member is kept, only the way to it.
type connections struct {
	mu   sync.Mutex
	kept map[string]*clientv3.Client
}

// question is asked over a connection, until the context ends.
type question func(context.Context, *clientv3.Client) error

// ask asks over the connection that is kept, if there is one. What fails over it is asked once more over a new one, because it may be the connection that
// is dead and not whom it leads to; so whoever answers is never taken for one who does not. Each time it waits no longer than the limit. A
// connection is kept once it has brought an answer.
func (c *connections) ask(ctx context.Context, limit time.Duration, endpoints []string, with credentials, ask question) error {
	once := func(to *clientv3.Client) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return ask(ctx, to)
	}
	name := nameOf(endpoints, with)
	if kept := c.take(name); kept != nil {
		if err := once(kept); err == nil {
			c.keep(name, kept)
			return nil
		}
		closed(kept)
	}
	made, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: with.config, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	if err := once(made); err != nil {
		closed(made)
		return err
	}
	c.keep(name, made)
	return nil
}

func nameOf(endpoints []string, with credentials) string {
	return strings.Join(append(slices.Clone(endpoints), with.id), " ")
}

// take takes the connection out, so that two who ask at once have one each.
func (c *connections) take(name string) *clientv3.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept[name]
	delete(c.kept, name)
	return kept
}

func (c *connections) keep(name string, made *clientv3.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.kept[name]; other != nil {
		closed(other)
	}
	if c.kept == nil {
		c.kept = map[string]*clientv3.Client{}
	}
	c.kept[name] = made
}

// only closes every other connection: to members that are gone, and those that were opened with certificates of yesterday.
func (c *connections) only(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, kept := range c.kept {
		if !slices.Contains(names, name) {
			delete(c.kept, name)
			closed(kept)
		}
	}
}

// closed closes what was only read from.
func closed(c *clientv3.Client) { _ = c.Close() }
