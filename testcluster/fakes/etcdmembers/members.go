// SPDX-License-Identifier: Apache-2.0

package etcdmembers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	poll    = 100 * time.Millisecond
	timeout = time.Minute
)

// Members are the members of one etcd.
type Members struct {
	Endpoints []string
	// Processes are the members' processes, in the same order. They end with the cluster.
	Processes []*embedded.Component
}

// Start starts n members and waits until all are healthy.
func Start(ctx context.Context, c *embedded.Cluster, n int) (*Members, error) {
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
	}
	return StartNamed(ctx, c, names)
}

// StartNamed starts members with names, as those of OpenShift have the names of their nodes.
func StartNamed(ctx context.Context, c *embedded.Cluster, names []string) (*Members, error) {
	n := len(names)
	assets, err := assets.Ensure(ctx, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("get etcd: %w", err)
	}
	urls, err := freeURLs(2 * n)
	if err != nil {
		return nil, err
	}
	clients, peers := urls[:n], urls[n:]
	var all []string
	for i, peer := range peers {
		all = append(all, names[i]+"="+peer)
	}
	m := &Members{Endpoints: clients}
	for i := range n {
		process, err := c.Run(ctx, name(i), assets.Program("etcd"),
			"--name="+names[i], "--data-dir="+filepath.Join(c.Dir(), name(i)), "--unsafe-no-fsync",
			"--listen-client-urls="+clients[i], "--advertise-client-urls="+clients[i],
			"--listen-peer-urls="+peers[i], "--initial-advertise-peer-urls="+peers[i],
			"--initial-cluster="+strings.Join(all, ","), "--initial-cluster-token="+c.Dir(),
		)
		if err != nil {
			return nil, err
		}
		m.Processes = append(m.Processes, process)
	}
	for i, endpoint := range clients {
		if err := healthy(ctx, endpoint); err != nil {
			return nil, fmt.Errorf("%s of etcd does not become healthy: %w\n%s", name(i), err, m.Processes[i].LogTail(2000))
		}
	}
	return m, nil
}

func name(i int) string { return fmt.Sprintf("etcd-member-%d", i) }

func healthy(ctx context.Context, endpoint string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/health", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		if response.StatusCode != http.StatusOK {
			last = errors.New(response.Status)
		}
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func freeURLs(n int) ([]string, error) {
	var urls []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // held until all are found, so that they differ
		urls = append(urls, "http://"+listener.Addr().String())
	}
	return urls, nil
}
