// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/internal/apiserver"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/join/jointest"
	"github.com/solonode/sno/install/phase"
)

// server is an API server where all authenticated users may request certificates.
var server = apiserver.Shared{Prepare: jointest.Allow}

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

const host = "master0"

type cluster struct {
	*testing.T
	config *rest.Config
	kubernetes.Interface
	root string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	config := server.Running(t)
	c := &cluster{t, config, kubernetes.NewForConfigOrDie(config), t.TempDir()}
	everything := metav1.ListOptions{}
	fixture.NoError(c, c.CertificatesV1().CertificateSigningRequests().DeleteCollection(t.Context(), metav1.DeleteOptions{}, everything))
	fixture.NoError(c, c.CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, everything))
	return c
}

func (c *cluster) ask(name string, r jointest.Request) {
	c.Helper()
	r.Create(c, c.config, name)
}

func (c *cluster) register(status corev1.ConditionStatus) {
	c.Helper()
	jointest.Register(c, c, host, status)
}

func (c *cluster) serve(node string, end time.Time) {
	c.Helper()
	c.write(join.ServingCertificate, node, end)
}

func (c *cluster) write(name, node string, end time.Time) {
	c.Helper()
	jointest.Certificate(c, c.root, name, node, end)
}

// decided expects the decisions about all requests.
func (c *cluster) decided(want map[string]string) {
	c.Helper()
	fixture.Equal(c, "decided", want, jointest.Decided(c, c), cmpopts.EquateEmpty())
}

func (c *cluster) options() join.Options {
	return join.Options{
		Client: c, Root: c.root, Name: host, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")},
		Since: time.Now().Add(-time.Minute), Interval: 20 * time.Millisecond, Now: time.Now,
	}
}

func (c *cluster) approveTwice(o join.Options) error {
	_ = join.Once(c.Context(), o)
	return join.Once(c.Context(), o)
}

// pending approves, and expects that the node has not joined for a reason.
func (c *cluster) pending(o join.Options, want ...string) {
	c.Helper()
	err := c.approveTwice(o)
	if !errors.Is(err, join.ErrNotJoined) {
		c.Errorf("error %v", err)
	}
	for _, part := range want {
		if !strings.Contains(fmt.Sprint(err), part) {
			c.Errorf("error %v, want %q", err, part)
		}
	}
}

const approved = "Approved " + join.ApprovalReason

// Only this host's two requests are approved, in turn, and a killed command continues (R-APP-4).
func TestThisHostJoins(t *testing.T) {
	c := newCluster(t)
	c.ask("client", jointest.Client(host))
	c.ask("early", jointest.Serving(host, host))
	c.pending(c.options(), "early")
	c.decided(map[string]string{"client": approved})
	c.register(corev1.ConditionFalse)
	c.ask("serving", jointest.Serving(host, host, "192.0.2.10", "2001:db8::10"))
	c.pending(c.options(), "not Ready")
	c.decided(map[string]string{"client": approved, "early": approved, "serving": approved})
}

func TestEndsWithTheServingCertificate(t *testing.T) {
	c := newCluster(t)
	c.register(corev1.ConditionTrue)
	c.pending(c.options(), "no serving certificate")
	c.serve("other", time.Now().Add(time.Hour))
	c.pending(c.options(), `the certificate of "system:node:other"`)
	c.serve(host, time.Now().Add(-time.Hour))
	c.pending(c.options(), "has ended")
	c.serve(host, time.Now().Add(time.Hour))
	// The requests have been deleted, as an hour after the approval.
	if err := join.Approve(t.Context(), c.options(), nil); err != nil {
		t.Error(err)
	}
}

// A kubelet without a client certificate and a request is restarted, once, since it backs off.
func TestKubeletIsRestarted(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*cluster)
		err     error
		want    int
	}{
		"no request":              {func(*cluster) {}, nil, 1},
		"failed restart":          {func(*cluster) {}, errors.New("no such unit"), 1},
		"request of another host": {func(c *cluster) { c.ask("other", jointest.Client("master1")) }, nil, 1},
		"request":                 {func(c *cluster) { c.ask("client", jointest.Client(host)) }, nil, 0},
		"client certificate":      {func(c *cluster) { c.write(join.ClientCertificate, host, time.Now().Add(time.Hour)) }, nil, 0},
		"certificate has ended":   {func(c *cluster) { c.write(join.ClientCertificate, host, time.Now().Add(-30*time.Second)) }, nil, 1},
		"serving certificate":     {func(c *cluster) { c.serve(host, time.Now().Add(time.Hour)) }, nil, 1},
		"request after the certificate has ended": {func(c *cluster) {
			c.write(join.ClientCertificate, host, time.Now().Add(-30*time.Second))
			c.ask("client", jointest.Client(host))
		}, nil, 0},
		"request before the certificate has ended": {func(c *cluster) {
			c.ask("client", jointest.Client(host))
			_ = c.approveTwice(c.options())
			c.write(join.ClientCertificate, host, time.Now().Add(30*time.Second))
		}, nil, 1},
	} {
		c := newCluster(t)
		test.prepare(c)
		ctx, end := context.WithCancel(t.Context())
		reads, restarts := 0, 0
		o := c.options()
		o.Client = &counting{c, func() {
			if reads++; reads == 4 {
				end()
			}
		}}
		o.Now = func() time.Time { return time.Now().Add(time.Minute) }
		o.Restart = func(context.Context) error {
			restarts++
			return test.err
		}
		fixture.Fails(t, name, join.Approve(ctx, o, nil), join.ErrNotJoined)
		end()
		if restarts != test.want {
			t.Errorf("%s: restarted %d times, want %d", name, restarts, test.want)
		}
	}
}

// A power cut loses the key of a request, which the kubelet has in memory only: before its approval, the next kubelet's
// request competes with it; after it, the next kubelet would wait forever. The kubelet is restarted, once, and of the
// requests since then one is approved, unless there are several again.
func TestKubeletThatLostItsKey(t *testing.T) {
	issued := func(c *cluster) {
		c.ask("first", jointest.Client(host))
		_ = c.approveTwice(c.options())
		c.issue("first")
		c.ask("before", jointest.Client(host))
	}
	competing := func(c *cluster) {
		c.ask("first", jointest.Client(host))
		c.ask("before", jointest.Client(host))
	}
	ended := func(prepare func(*cluster)) func(*cluster) {
		return func(c *cluster) {
			c.register(corev1.ConditionTrue)
			c.write(join.ClientCertificate, host, time.Now().Add(-50*time.Second))
			prepare(c)
		}
	}
	for name, test := range map[string]struct {
		prepare   func(*cluster)
		asked     []string // after the restart
		restarted int
		want      []string // approved
	}{
		"issued":                     {issued, []string{"new"}, 1, []string{"first", "new"}},
		"issued, attacked":           {issued, []string{"new", "hostile"}, 1, []string{"first"}},
		"not lost":                   {func(c *cluster) { issued(c); c.write(join.ClientCertificate, host, time.Now().Add(time.Hour)) }, nil, 0, []string{"first"}},
		"competing":                  {competing, []string{"new"}, 1, []string{"new"}},
		"competing, attacked":        {competing, []string{"new", "hostile"}, 1, nil},
		"ended, then issued":         {ended(issued), []string{"new"}, 1, []string{"first", "new"}},
		"ended, then competing":      {ended(competing), []string{"new"}, 1, []string{"new"}},
		"ended, competing, attacked": {ended(competing), []string{"new", "hostile"}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			test.prepare(c)
			ctx, end := context.WithCancel(t.Context())
			began, restarted, reads := time.Now(), 0, 0
			o := join.LostAfter(c.options(), 1100*time.Millisecond)
			o.Client = &counting{c, func() {
				if time.Since(began) > 2*time.Second {
					reads++
				}
				if reads == 4 {
					end()
				}
			}}
			o.Restart = func(context.Context) error {
				restarted++
				for _, name := range test.asked {
					c.ask(name, jointest.Client(host))
				}
				return nil
			}
			fixture.Fails(t, "", join.Approve(ctx, o, nil), join.ErrNotJoined)
			end()
			if restarted != test.restarted {
				t.Errorf("restarted %d times, want %d", restarted, test.restarted)
			}
			want := map[string]string{}
			for _, request := range test.want {
				want[request] = approved
			}
			c.decided(want)
		})
	}
}

func (c *cluster) issue(name string) {
	c.Helper()
	c.write("issued.pem", host, time.Now().Add(time.Hour))
	certificate := fixture.Must(os.ReadFile(filepath.Join(c.root, "issued.pem")))
	csr := fixture.Must(c.CertificatesV1().CertificateSigningRequests().Get(c.Context(), name, metav1.GetOptions{}))
	csr.Status.Certificate = certificate
	fixture.Must(c.CertificatesV1().CertificateSigningRequests().UpdateStatus(c.Context(), csr, metav1.UpdateOptions{}))
}

type counting struct {
	kubernetes.Interface
	count func()
}

func (c *counting) CoreV1() corev1client.CoreV1Interface {
	c.count()
	return c.Interface.CoreV1()
}

func TestApprovedByAnotherClient(t *testing.T) {
	c := newCluster(t)
	c.ask("client", jointest.Client(host))
	csr := fixture.Must(c.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "client", metav1.GetOptions{}))
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Person"},
	}
	fixture.Must(c.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "client", csr, metav1.UpdateOptions{}))
	c.ask("second", jointest.Client(host))
	c.pending(c.options())
	c.decided(map[string]string{"client": "Approved Person"})
}

// Whoever has the bootstrapper's secret can ask for this host's certificate before its kubelet, or after it. Neither is
// approved while it is not known which is the kubelet's, and a person's decision ends that.
func TestTwoClientRequestsAtOnce(t *testing.T) {
	c := newCluster(t)
	c.ask("kubelet", jointest.Client(host))
	c.ask("hostile", jointest.Client(host))
	c.pending(c.options(), "kubelet: More requests are pending", "hostile: More requests are pending")
	c.decided(nil)
	fixture.NoError(c, c.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), "hostile", metav1.DeleteOptions{}))
	c.pending(c.options())
	c.decided(map[string]string{"kubelet": approved})
	c.ask("late", jointest.Client(host))
	c.pending(c.options(), "late: ")
	c.decided(map[string]string{"kubelet": approved})
}

func TestRequestsBeforeTheInstallation(t *testing.T) {
	c := newCluster(t)
	c.ask("client", jointest.Client(host))
	o := c.options()
	o.Since = time.Now().Add(time.Minute)
	c.pending(o)
	c.decided(nil)
}

func TestUnusableAddress(t *testing.T) {
	o := join.Options{Name: host, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Now: time.Now}
	fixture.Fails(t, "", join.Approve(t.Context(), o, nil), phase.ErrInput, "127.0.0.1")
}

// A node whose client certificate has ended requests one as the bootstrapper. Of its requests since then one is
// approved, if there are no others (R-AIO-7).
func TestRejoinAfterCertificateEnded(t *testing.T) {
	c := newCluster(t)
	c.register(corev1.ConditionTrue)
	c.serve(host, time.Now().Add(time.Hour))
	c.ask("first", jointest.Client(host))
	o := c.options()
	end := time.Now().Add(time.Hour)
	c.write(join.ClientCertificate, host, end)
	if err := c.approveTwice(o); err != nil {
		t.Errorf("with a valid certificate: %v", err)
	}
	o.Now = func() time.Time { return end.Add(time.Minute) }
	c.pending(o, join.ClientCertificate+" has ended")
	c.decided(nil)
	o.Now = time.Now
	c.write(join.ClientCertificate, host, o.Since.Add(time.Second))
	c.ask("another", jointest.Client("master1"))
	c.ask("second", jointest.Client(host))
	c.ask("third", jointest.Client(host))
	c.pending(o)
	c.decided(nil)
	for _, name := range []string{"second", "third"} {
		fixture.NoError(c, c.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	_ = c.approveTwice(o)
	c.ask("fourth", jointest.Client(host))
	c.pending(o)
	c.decided(map[string]string{"first": approved})
	c.write(join.ClientCertificate, host, end)
	if err := c.approveTwice(o); err != nil {
		t.Errorf("with a new certificate: %v", err)
	}
}
