// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/etcdguard"
	standalone "github.com/solonode/sno/etcdguard/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/topology"
)

func TestReadMembers(t *testing.T) {
	t.Parallel()
	etcd := serveEtcd(t)
	wantMembers := func(is error, want ...etcdguard.Member) {
		t.Helper()
		got, err := standalone.ReadMembers(t.Context(), []string{etcd.endpoint}, nil, nil)
		if diff := cmp.Diff(want, got); !errors.Is(err, is) || diff != "" {
			t.Errorf("%v, want %v (-want +got):\n%s", err, is, diff)
		}
	}
	etcd.set(3, 2)
	etcd.list = append(etcd.list, &etcdserverpb.Member{ID: 4, IsLearner: true})
	wantMembers(nil, []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3}, {ID: 4, Learner: true}}...)
	etcd.set(0, -1)
	if got, err := standalone.ReadMembers(t.Context(), []string{etcd.endpoint}, nil, nil); err == nil || got != nil {
		t.Errorf("no quorum: %v, %v", got, err)
	}
	etcd.set(0, 0)
	wantMembers(standalone.ErrNoMember)
}

func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// selfSigned returns a self-signed certificate for client and server, as files in the folder and as objects.
func selfSigned(folder string) (*corev1.Secret, *corev1.ConfigMap) {
	files := must(transport.SelfCert(zap.NewNop(), folder, []string{"127.0.0.1:0"}, 1, x509.ExtKeyUsageClientAuth))
	certificate := must(os.ReadFile(files.CertFile))
	return &corev1.Secret{Data: map[string][]byte{"tls.crt": certificate, "tls.key": must(os.ReadFile(files.KeyFile))}},
		&corev1.ConfigMap{Data: map[string]string{"ca-bundle.crt": string(certificate)}}
}

func clientTLS(secret *corev1.Secret, bundle *corev1.ConfigMap) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(bundle.Data["ca-bundle.crt"]))
	pair := must(tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// realEtcd is a cluster of processes that require a client certificate and do not check reconfigurations.
type realEtcd struct {
	*testing.T
	secret  *corev1.Secret
	bundle  *corev1.ConfigMap
	members []*realMember
}

type realMember struct {
	endpoint      string
	client        *clientv3.Client
	id            uint64
	stdin         io.Closer
	exited        chan struct{}
	alive, member bool // as the test has left it
}

func (m *realMember) kill() {
	_ = m.stdin.Close() // may be closed already
	<-m.exited
	m.alive = false
}

func startEtcd(t *testing.T, n int) *realEtcd {
	t.Helper()
	programs, folder := must(assets.Ensure(t.Context(), os.Stderr)), t.TempDir()
	e := &realEtcd{T: t}
	e.secret, e.bundle = selfSigned(folder)
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("m%d=unix://peer%d:0", i, i))
	}
	for i := range n {
		m := &realMember{endpoint: "https://" + apiserver.FreeAddress(t), exited: make(chan struct{}), alive: true, member: true}
		// The shell kills etcd when its standard input is closed, also if the test's process ends.
		command := exec.Command("/bin/sh", "-c", `"$0" "$@" & read -r _; kill -9 $!; wait`, programs.Program("etcd"), //nolint:gosec // fixed
			fmt.Sprintf("--name=m%d", i), fmt.Sprintf("--data-dir=m%d", i),
			fmt.Sprintf("--listen-peer-urls=unix://peer%d:0", i), fmt.Sprintf("--initial-advertise-peer-urls=unix://peer%d:0", i),
			"--listen-client-urls="+m.endpoint, "--advertise-client-urls="+m.endpoint, "--initial-cluster="+strings.Join(peers, ","),
			"--initial-cluster-token="+filepath.Base(filepath.Dir(folder)),
			"--client-cert-auth", "--trusted-ca-file=cert.pem", "--cert-file=cert.pem", "--key-file=key.pem",
			"--strict-reconfig-check=false", "--heartbeat-interval=100", "--election-timeout=500", "--unsafe-no-fsync", "--log-level=error")
		command.Dir = folder
		m.stdin = must(command.StdinPipe())
		must(0, command.Start())
		go func() { _ = command.Wait(); close(m.exited) }()
		t.Cleanup(m.kill)
		m.client = must(clientv3.New(clientv3.Config{
			Endpoints: []string{m.endpoint}, Logger: zap.NewNop(), TLS: clientTLS(e.secret, e.bundle)}))
		t.Cleanup(func() { _ = m.client.Close() })
		e.members = append(e.members, m)
	}
	apiserver.Eventually(t, "etcd has members", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer, err := e.members[0].client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range answer.Members {
			if m.Name == "" {
				return fmt.Errorf("%x has not joined", m.ID)
			}
			e.members[must(strconv.Atoi(strings.TrimPrefix(m.Name, "m")))].id = m.ID
		}
		return nil
	})
	return e
}

// TestRealMembers reads three members of a real etcd with TLS, stops one, and then the quorum.
func TestRealMembers(t *testing.T) {
	long(t)
	t.Parallel()
	etcd := startEtcd(t, 3)
	const unreachable = "https://127.0.0.1:1"
	endpoints := []string{unreachable, etcd.members[0].endpoint, etcd.members[1].endpoint}
	hasMembers := func(n, healthy int) func() error {
		return func() error {
			got, err := standalone.ReadMembers(t.Context(), endpoints, etcd.secret, etcd.bundle)
			healthyMembers := len(slices.DeleteFunc(slices.Clone(got), func(m etcdguard.Member) bool { return m.ID == 0 || m.Learner || !m.Healthy }))
			if err != nil || len(got) != n || healthyMembers != healthy {
				return fmt.Errorf("%d members, %d healthy, %w; want %d and %d", len(got), healthyMembers, err, n, healthy)
			}
			return nil
		}
	}
	apiserver.Eventually(t, "three members are healthy", hasMembers(3, 3))

	otherSecret, otherBundle := selfSigned(t.TempDir())
	for name, use := range map[string]struct {
		secret *corev1.Secret
		bundle *corev1.ConfigMap
	}{
		"another client":     {otherSecret, etcd.bundle},
		"another authority":  {etcd.secret, otherBundle},
		"no certificate":     {&corev1.Secret{}, etcd.bundle},
		"no authority":       {etcd.secret, &corev1.ConfigMap{}},
		"there is no Secret": {nil, etcd.bundle},
		"there is no bundle": {etcd.secret, nil},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if got, err := standalone.ReadMembers(ctx, endpoints, use.secret, use.bundle); err == nil || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		cancel()
	}

	etcd.members[2].kill()
	apiserver.Eventually(t, "two are healthy", hasMembers(3, 2))
	etcd.members[1].kill()
	apiserver.Eventually(t, "members are unknown", func() error {
		if got, err := standalone.ReadMembers(t.Context(), endpoints, etcd.secret, etcd.bundle); err == nil || got != nil {
			return fmt.Errorf("%v, %w", got, err)
		}
		return nil
	})
}

// TestRealEtcd compares SafeToRemove and SafeToRestart with a real etcd: after an unsafe change all writes fail.
func TestRealEtcd(t *testing.T) {
	long(t)
	t.Parallel()
	for script, size := range map[string]int{ // they wait for timeouts, so they run in parallel
		"remove-live kill":      3,
		"kill remove-live":      3,
		"kill kill remove-dead": 3,
		"kill kill remove-dead remove-dead kill remove-dead remove-live": 5,
		"kill remove-live kill": 5,
		"kill kill remove-live": 5,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			e := startEtcd(t, size)
			e.wantWrite(true)
			for action := range strings.FieldsSeq(script) {
				t.Log(action)
				if action == "kill" {
					e.killMember()
				} else {
					e.removeMember(action == "remove-live")
				}
			}
		})
	}
}

func (e *realEtcd) memberList() []etcdguard.Member {
	var list []etcdguard.Member
	for _, m := range e.members {
		if m.member {
			list = append(list, etcdguard.Member{ID: m.id, Healthy: m.alive})
		}
	}
	return list
}

func (e *realEtcd) first() *realMember {
	return e.members[slices.IndexFunc(e.members, func(m *realMember) bool { return m.member && m.alive })]
}

func (e *realEtcd) last(alive bool) *realMember {
	members := slices.Clone(e.members)
	slices.Reverse(members)
	return members[slices.IndexFunc(members, func(m *realMember) bool { return m.member && m.alive == alive })]
}

func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

func (e *realEtcd) killMember() {
	e.Helper()
	m := e.last(true)
	restart := must(etcdguard.SafeToRestart(clusterOf(ha), e.memberList(), m.id))
	m.kill()
	e.wantWrite(restart.Safe)
}

func (e *realEtcd) removeMember(alive bool) {
	e.Helper()
	m := e.last(alive)
	removal := must(etcdguard.SafeToRemove(clusterOf(sr), nil, e.memberList(), m.id))
	remove := func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.MemberRemove(ctx, m.id)
		return err
	}
	if removal.Reason != etcdguard.NoQuorum {
		e.wantRequest(true, remove)
		m.member = false
		e.wantWrite(removal.Safe)
		return
	}
	// Without a quorum neither the removal, which has no timeout in etcd, nor a write succeeds.
	ctx, cancel := context.WithCancel(e.Context())
	answered := make(chan error, 1)
	go func() { answered <- remove(ctx, e.first().client) }()
	e.wantWrite(false)
	cancel()
	if <-answered == nil {
		e.Error("etcd agreed on the removal")
	}
	list, err := e.first().client.MemberList(e.Context(), clientv3.WithSerializable())
	if err != nil || !slices.ContainsFunc(list.Members, func(listed *etcdserverpb.Member) bool { return listed.ID == m.id }) {
		e.Errorf("the member is gone: %v", err)
	}
}

func (e *realEtcd) wantWrite(want bool) {
	e.Helper()
	e.wantRequest(want, func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.Put(ctx, "key", "value")
		return err
	})
}

// wantRequest retries a request until it succeeds, or until it times out because the quorum is missing.
func (e *realEtcd) wantRequest(want bool, request func(context.Context, *clientv3.Client) error) {
	e.Helper()
	apiserver.Eventually(e, fmt.Sprintf("success %t", want), func() error {
		ctx, cancel := context.WithTimeout(e.Context(), 10*time.Second) // etcd's own timeout is 6 s; its client retries without a leader
		defer cancel()
		err := request(ctx, e.first().client)
		switch {
		case err == nil && !want:
			e.Fatal("the request succeeded without a quorum")
		case want && errors.Is(err, rpctypes.ErrMemberNotFound):
			return nil // an earlier request was carried out although it returned an error
		case !want && (strings.Contains(err.Error(), "request timed out") || ctx.Err() != nil):
			return nil
		}
		return err
	})
}
