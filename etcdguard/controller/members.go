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

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/manager"
)

const (
	clientPort = "2379"
	// listTimeout bounds a question for the list of members, healthTimeout the read that shows that one of them is healthy. A guard's own probe
	// waits as long as the latter.
	listTimeout   = 5 * time.Second
	healthTimeout = 2 * time.Second

	// The keys of the Secret and of the ConfigMap.
	certificateKey, privateKey, bundleKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca-bundle.crt"
)

var (
	errEndpoint    = errors.New("not an endpoint of etcd")
	errNoEndpoint  = errors.New("no control-plane node has an internal address to ask etcd at")
	errNoMember    = errors.New("etcd says that it has no members")
	errCertificate = errors.New("the client certificate of etcd cannot be used")
)

// parseEndpoints reads the flag. Without a scheme an endpoint is https.
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
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", errEndpoint, text, err)
		}
		switch {
		case u.Scheme == "unix" && u.Host+u.Path != "":
		case (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.Port() != "":
		default:
			return nil, fmt.Errorf("%w: %q; want something like https://10.0.0.1:2379", errEndpoint, text)
		}
		endpoints = append(endpoints, text)
	}
	return endpoints, nil
}

// etcdMembers asks etcd.
type etcdMembers struct {
	reader client.Reader
	// endpoints are where to ask for the list; empty for the control-plane nodes.
	endpoints   []string
	connections *connections
}

var _ Members = &etcdMembers{}

// Members implements Members. The list is the one that the quorum agrees on, so without a quorum there is none. A member is healthy
// when it answers a linearizable read of its own.
//
// Certificates are read every time, because they are replaced now and then.
func (e *etcdMembers) Members(ctx context.Context) ([]etcdguard.Member, error) {
	var endpoints []string
	var with credentials
	readWhere := func(ctx context.Context) (err error) {
		endpoints, err = e.where(ctx)
		return err
	}
	readCertificates := func(ctx context.Context) (err error) {
		with, err = e.certificates(ctx)
		return err
	}
	reads := []func(context.Context) error{readWhere}
	if len(e.endpoints) == 0 || slices.ContainsFunc(e.endpoints, isSecure) {
		reads = append(reads, readCertificates)
	}
	if err := manager.Beside(ctx, reads...); err != nil {
		return nil, err
	}
	used := []string{nameOf(endpoints, with)}
	defer func() { e.connections.only(used) }()
	listed, err := e.list(ctx, endpoints, with)
	switch {
	case err != nil:
		return nil, err
	case len(listed) == 0:
		return nil, errNoMember
	}
	members := make([]etcdguard.Member, len(listed))
	var asking sync.WaitGroup
	for i, m := range listed {
		members[i] = etcdguard.Member{ID: m.ID, Learner: m.IsLearner}
		used = append(used, nameOf(m.ClientURLs, with))
		asking.Go(func() { members[i].Healthy = e.healthy(ctx, m, with) })
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return members, nil
}

func isSecure(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// where is the flag, or the addresses of the control-plane nodes and arbiters.
func (e *etcdMembers) where(ctx context.Context) ([]string, error) {
	if len(e.endpoints) > 0 {
		return e.endpoints, nil
	}
	masters, arbiters := &corev1.NodeList{}, &corev1.NodeList{}
	if err := manager.Beside(ctx,
		func(ctx context.Context) error { return e.nodes(ctx, etcdguard.MasterRole, masters) },
		func(ctx context.Context) error { return e.nodes(ctx, etcdguard.ArbiterRole, arbiters) },
	); err != nil {
		return nil, err
	}
	var endpoints []string
	for _, node := range slices.Concat(masters.Items, arbiters.Items) {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				endpoints = append(endpoints, "https://"+net.JoinHostPort(address.Address, clientPort))
			}
		}
	}
	if len(endpoints) == 0 {
		return nil, errNoEndpoint
	}
	slices.Sort(endpoints)
	return slices.Compact(endpoints), nil
}

func (e *etcdMembers) nodes(ctx context.Context, role string, into *corev1.NodeList) error {
	if err := e.reader.List(ctx, into, client.HasLabels{role}); err != nil {
		return fmt.Errorf("reading the addresses of the nodes with %s: %w", role, err)
	}
	return nil
}

// certificates are those with which guards ask etcd for its health.
func (e *etcdMembers) certificates(ctx context.Context) (credentials, error) {
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := manager.Beside(ctx,
		func(ctx context.Context) error {
			if err := e.reader.Get(ctx, secretObject.Key(), secret); err != nil {
				return fmt.Errorf("reading the client certificate of etcd: %w", err)
			}
			return nil
		},
		func(ctx context.Context) error {
			if err := e.reader.Get(ctx, bundleObject.Key(), bundle); err != nil {
				return fmt.Errorf("reading the CA bundle of etcd: %w", err)
			}
			return nil
		},
	); err != nil {
		return credentials{}, err
	}
	certificate, key, trusted := secret.Data[certificateKey], secret.Data[privateKey], []byte(bundle.Data[bundleKey])
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return credentials{}, fmt.Errorf("%w: Secret %s: %w", errCertificate, secretObject.Key(), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted) {
		return credentials{}, fmt.Errorf("%w: ConfigMap %s has no certificate in %s", errCertificate, bundleObject.Key(), bundleKey)
	}
	return credentials{
		config: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12},
		id:     identify(certificate, key, trusted),
	}, nil
}

func (e *etcdMembers) list(ctx context.Context, endpoints []string, with credentials) (members []*etcdserverpb.Member, err error) {
	err = e.connections.ask(ctx, listTimeout, endpoints, with, func(ctx context.Context, to *clientv3.Client) error {
		answer, err := to.MemberList(ctx)
		if err != nil {
			return fmt.Errorf("asking etcd for its members: %w", err)
		}
		members = answer.Members
		return nil
	})
	return members, err
}

// healthy asks one member, and no other, for a key. What it answers does not matter, nor that there is no such key.
func (e *etcdMembers) healthy(ctx context.Context, m *etcdserverpb.Member, with credentials) bool {
	if len(m.ClientURLs) == 0 {
		return false // it never started
	}
	return e.connections.ask(ctx, healthTimeout, m.ClientURLs, with, func(ctx context.Context, to *clientv3.Client) error {
		if _, err := to.Get(ctx, "health"); err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
			return err
		}
		return nil
	}) == nil
}
