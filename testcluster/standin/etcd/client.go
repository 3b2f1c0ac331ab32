// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/solonode/sno/etcdguard"
)

const (
	listTimeout   = 5 * time.Second
	healthTimeout = 2 * time.Second
)

var errNoMember = errors.New("etcd returned an empty list of members")

// member is a member of etcd. In OpenShift it has the name of its node.
type member struct {
	Name string
	etcdguard.Member
}

func voters(members []member) (all, healthy int) {
	for _, m := range members {
		if m.Learner {
			continue
		}
		all++
		if m.Healthy {
			healthy++
		}
	}
	return all, healthy
}

// etcd keeps no connection between calls.
type etcd struct{ endpoints []string }

// members returns the members with their health: whether they answer a linearizable read.
func (e etcd) members(ctx context.Context) ([]member, error) {
	var members []member
	err := e.call(ctx, listTimeout, e.endpoints, func(ctx context.Context, c *clientv3.Client) error {
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		members = make([]member, len(list.Members))
		var reading sync.WaitGroup
		for i, m := range list.Members {
			members[i] = member{m.Name, etcdguard.Member{ID: m.ID, Learner: m.IsLearner}}
			reading.Go(func() { members[i].Healthy = e.healthy(ctx, m.ClientURLs) })
		}
		reading.Wait()
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("listing the members of etcd: %w", err)
	case len(members) == 0:
		return nil, errNoMember
	}
	return members, nil
}

// healthy reports the health of a member. One that never started has no URL.
func (e etcd) healthy(ctx context.Context, urls []string) bool {
	return len(urls) > 0 && e.call(ctx, healthTimeout, urls, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, "health")
		return err
	}) == nil
}

func (e etcd) remove(ctx context.Context, m member) error {
	err := e.call(ctx, listTimeout, e.endpoints, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(ctx, m.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("removing member %s of etcd: %w", m.Name, err)
	}
	return nil
}

func (e etcd) call(ctx context.Context, timeout time.Duration, endpoints []string, request func(context.Context, *clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer c.Close() //nolint:errcheck // nothing is pending
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return request(ctx, c)
}
