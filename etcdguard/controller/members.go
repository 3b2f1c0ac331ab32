// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/etcdguard"
)

const (
	clientPort    = "2379"
	bundleKey     = "ca-bundle.crt"
	listTimeout   = 5 * time.Second
	healthTimeout = 2 * time.Second // as in the guards' readiness probe
)

var (
	errEndpoint   = errors.New("not an endpoint of etcd")
	errNoEndpoint = errors.New("no control-plane node has an internal address")
	// ErrNoMember is returned for an empty list of members.
	ErrNoMember    = errors.New("etcd returned an empty list of members")
	errCertificate = errors.New("the certificates of etcd cannot be used")
)

// parseEndpoints parses a comma-separated list. The default scheme is https.
func parseEndpoints(list string) ([]string, error) {
	var endpoints []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "https://" + text
		}
		u, err := url.Parse(text)
		switch {
		case err == nil && u.Scheme == "unix" && u.Host+u.Path != "":
		case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.Port() != "":
		default:
			return nil, fmt.Errorf("%w: %q; want something like https://10.0.0.1:2379", errEndpoint, text)
		}
		endpoints = append(endpoints, text)
	}
	return endpoints, nil
}

// readMembers calls the configured endpoints, or those of the nodes.
func (p *patcher) readMembers(ctx context.Context, nodes []corev1.Node, secret *corev1.Secret, bundle *corev1.ConfigMap) ([]etcdguard.Member, error) {
	endpoints := p.endpoints
	if len(endpoints) == 0 {
		endpoints = endpointsOf(nodes)
	}
	if len(endpoints) == 0 {
		return nil, errNoEndpoint
	}
	return ReadMembers(ctx, endpoints, secret, bundle)
}

// ReadMembers returns the members of etcd with their health, for operators that have no client of etcd. The endpoints
// are URLs. Those of https need the client's Secret and the ConfigMap with the authorities of the servers, as in
// namespace openshift-etcd. Certificates are rotated, so no connection is kept between calls.
func ReadMembers(ctx context.Context, endpoints []string, secret *corev1.Secret, bundle *corev1.ConfigMap) ([]etcdguard.Member, error) {
	var tlsConfig *tls.Config
	var err error
	if slices.ContainsFunc(endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") }) {
		if tlsConfig, err = certificates(secret, bundle); err != nil {
			return nil, err
		}
	}
	list, err := call(ctx, listTimeout, endpoints, tlsConfig, func(ctx context.Context, etcd *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return etcd.MemberList(ctx)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("listing the members of etcd: %w", err)
	case len(list.Members) == 0:
		return nil, ErrNoMember
	}
	members := make([]etcdguard.Member, len(list.Members))
	var reading sync.WaitGroup
	for i, m := range list.Members {
		members[i] = etcdguard.Member{ID: m.ID, Learner: m.IsLearner}
		reading.Go(func() { members[i].Healthy = healthy(ctx, m.ClientURLs, tlsConfig) })
	}
	reading.Wait()
	return members, ctx.Err()
}

// healthy reports whether a member answers a linearizable read. A member that never started has no URL.
func healthy(ctx context.Context, urls []string, tlsConfig *tls.Config) bool {
	if len(urls) == 0 {
		return false
	}
	_, err := call(ctx, healthTimeout, urls, tlsConfig, func(ctx context.Context, etcd *clientv3.Client) (*clientv3.GetResponse, error) {
		return etcd.Get(ctx, "health")
	})
	return err == nil || errors.Is(err, rpctypes.ErrPermissionDenied)
}

func call[T any](ctx context.Context, timeout time.Duration, endpoints []string, tlsConfig *tls.Config,
	request func(context.Context, *clientv3.Client) (*T, error),
) (*T, error) {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: tlsConfig, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	defer etcd.Close() //nolint:errcheck // only read from
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return request(ctx, etcd)
}

func endpointsOf(nodes []corev1.Node) []string {
	var endpoints []string
	for _, node := range nodes {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				endpoints = append(endpoints, "https://"+net.JoinHostPort(address.Address, clientPort))
			}
		}
	}
	slices.Sort(endpoints)
	return slices.Compact(endpoints)
}

func certificates(secret *corev1.Secret, bundle *corev1.ConfigMap) (*tls.Config, error) {
	if secret == nil || bundle == nil {
		return nil, fmt.Errorf("%w: Secret %s or ConfigMap %s does not exist", errCertificate, secretObject.Key(), bundleObject.Key())
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%w: Secret %s: %w", errCertificate, secretObject.Key(), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(bundle.Data[bundleKey])) {
		return nil, fmt.Errorf("%w: ConfigMap %s has no certificate in %s", errCertificate, bundleObject.Key(), bundleKey)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
