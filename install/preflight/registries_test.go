// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/internal/fixture"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// registryServer starts a server that answers GET /v2/ with a status, at noon. It returns its host and its certificate.
func registryServer(t *testing.T, status int) (host, bundle string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v2/" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Date", noon.Format(http.TimeFormat))
		w.WriteHeader(status)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestRegistries(t *testing.T) {
	open, bundle := registryServer(t, http.StatusOK)
	closed, _ := registryServer(t, http.StatusUnauthorized)
	other, _ := registryServer(t, http.StatusForbidden)
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))
	unavailable := l.Addr().String()
	fixture.NoError(t, l.Close())
	for name, test := range map[string]struct {
		in     Input
		hosts  []string
		want   string
		advice string
	}{
		"open":              {Input{TrustBundle: bundle}, []string{open}, "ok registries: release: " + open, ""},
		"password required": {Input{TrustBundle: bundle}, []string{closed}, "ok registries: release: " + closed, ""},
		"one of two":        {Input{TrustBundle: bundle}, []string{unavailable, closed}, "ok registries: release: " + closed, ""},
		"other server":      {Input{TrustBundle: bundle}, []string{other}, "failed registries: release: no registry answers: https://" + other + "/v2/: 403 Forbidden: not the answer of a registry", "correct the name"},
		"unavailable":       {Input{TrustBundle: bundle}, []string{unavailable}, "failed registries: release: no registry answers: ...connection refused", "by HTTPS: firewall"},
		"both fail":         {Input{TrustBundle: bundle}, []string{unavailable, other}, "failed registries: release: no registry answers: ...connection refused; https://" + other + "/v2/: 403 Forbidden: not the answer of a registry", "correct the name"},
		"not trusted":       {Input{}, []string{open}, "failed registries: release: no registry answers: ...certificate signed by unknown authority", "add the CA"},
		"expired":           {Input{TrustBundle: bundle, Now: func() time.Time { return noon.AddDate(100, 0, 0) }}, []string{open}, "failed registries: release: no registry answers: ...", "compare the machine's clock"},
		"no such name":      {Input{TrustBundle: bundle, Resolver: resolver(t, nil)}, []string{"registry.example.com"}, "failed registries: release: no registry answers: ...no such host", "the DNS of this machine"},
		"invalid bundle":    {Input{TrustBundle: "none"}, []string{open}, "failed registries: additionalTrustBundle has no certificate in PEM", "correct it"},
		"other name":        {Input{TrustBundle: bundle, Resolver: resolver(t, map[string]string{"registry.example.org": "127.0.0.1"})}, []string{strings.Replace(open, "127.0.0.1", "registry.example.org", 1)}, "failed registries: release: no registry answers: ...not registry.example.org", "by HTTPS"},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in
			if in.Checks = []string{Registries}; in.Now == nil {
				in.Now = func() time.Time { return noon }
			}
			in.Sources = []Source{{"release", test.hosts, true}}
			found := Check(t.Context(), in)
			same(t, []string{test.want}, found)
			if !strings.Contains(found[0].Advice, test.advice) {
				t.Errorf("advice %q, want %q", found[0].Advice, test.advice)
			}
			if in.Sources[0].Required = false; found[0].State == StateFailed && in.TrustBundle == bundle {
				same(t, []string{"warning" + strings.TrimPrefix(test.want, "failed")}, Check(t.Context(), in))
			}
		})
	}
}

// The configured proxy is used except for NoProxy. Its password is in no finding.
func TestProxy(t *testing.T) {
	host, bundle := registryServer(t, http.StatusOK)
	_, port, _ := net.SplitHostPort(host)
	var asked atomic.Int32
	deny := http.StatusOK
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.Method != http.MethodConnect || r.Host != "example.com:"+port || deny != http.StatusOK {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		connect(t, w, host)
	}))
	t.Cleanup(proxy.Close)
	in := Input{
		Checks: []string{Registries}, TrustBundle: bundle, Now: func() time.Time { return noon }, Sources: []Source{{"release", []string{"example.com:" + port}, true}},
		Resolver: resolver(t, map[string]string{"example.com": "127.0.0.1"}),
		Proxy:    &installconfig.Proxy{HTTPSProxy: strings.Replace(proxy.URL, "http://", "http://user:hidden@", 1)},
	}
	good := []string{"ok registries: release: example.com:" + port}
	same(t, good, Check(t.Context(), in))
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests to the proxy", n)
	}
	for _, in.NoProxy = range []string{"example.com", ".com"} {
		same(t, good, Check(t.Context(), in))
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("requests to the proxy despite noProxy, %d in all", n)
	}
	in.NoProxy, deny = "", http.StatusProxyAuthRequired
	found := Check(t.Context(), in)
	same(t, []string{"failed registries: release: no registry answers: ...Proxy Authentication Required"}, found)
	if strings.Contains(found[0].Message, "hidden") {
		t.Error("the password is in the finding")
	}
}

func connect(t *testing.T, w http.ResponseWriter, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	for from, into := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() { _, _ = io.Copy(into, from); _ = into.Close() })
	}
	both.Wait()
}

// The clock is compared with the time of the configuration, and with the nearest of the registries' clocks.
func TestClock(t *testing.T) {
	host, bundle := registryServer(t, http.StatusUnauthorized)
	for name, test := range map[string]struct {
		now, created time.Time
		want         string
	}{
		"right":            {noon.Add(-time.Minute), noon.Add(-time.Hour), "ok clock: the clock has 2026-11-25T11:59:00Z, as that of " + host},
		"behind":           {noon.Add(-61 * time.Second), time.Time{}, "warning clock: the clock has 2026-11-25T11:58:59Z, which is 1m1s behind that of " + host},
		"ahead":            {noon.Add(time.Hour), time.Time{}, "warning clock: the clock has 2026-11-25T13:00:00Z, which is 1h0m0s ahead of that of " + host},
		"before creation":  {noon, noon.Add(time.Second), "failed clock: the clock has 2026-11-25T12:00:00Z, and the configuration was made at 2026-11-25T12:00:01Z"},
		"at the same time": {noon, noon, "ok clock: the clock has 2026-11-25T12:00:00Z, as that of " + host},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Checks: []string{Clock}, Now: func() time.Time { return test.now }, Created: test.created, TrustBundle: bundle,
				Sources: []Source{{"release", []string{"127.0.0.1:1", host}, true}},
			}
			same(t, []string{test.want}, Check(t.Context(), in))
		})
	}
}

func TestSources(t *testing.T) {
	const release = "quay.io/openshift-release-dev/ocp-release@sha256:0"
	mirrors := []installconfig.ImageSource{
		{Source: "quay.io/openshift-release-dev/ocp-release", Mirrors: []string{"mirror.example.com:5000/ocp"}, SourcePolicy: configv1.NeverContactSource},
		{Source: "quay.io/openshift-release-dev", Mirrors: []string{"other.example.com"}},
	}
	const secret = `{"auths":{"https://index.docker.io/v1/":{},"quay.io":{},"cloud.openshift.com":{},"registry.example.com:8443/team":{}}}`
	fromMirrors := []Source{
		{"images of quay.io/openshift-release-dev/ocp-release", []string{"mirror.example.com:5000"}, false},
		{"images of quay.io/openshift-release-dev", []string{"other.example.com", "quay.io"}, false},
	}
	fromSecret := []Source{
		{"pull secret, https://index.docker.io/v1/", []string{"registry-1.docker.io"}, false},
		{"pull secret, registry.example.com:8443/team", []string{"registry.example.com:8443"}, false},
	}
	// Its name is a prefix of the release image's repository, but not of its path.
	like := installconfig.ImageSource{Source: "quay.io/openshift-release-dev/ocp", Mirrors: []string{"like.example.com"}}
	for name, test := range map[string]struct {
		release string
		mirrors []installconfig.ImageSource
		secret  string
		want    []Source
		err     string
	}{
		"nothing":    {},
		"no mirrors": {release, nil, secret, append([]Source{{"release image " + release, []string{"quay.io"}, true}}, fromSecret...), ""},
		"mirrors":    {release, mirrors, secret, append(append([]Source{{"release image " + release, []string{"mirror.example.com:5000"}, true}}, fromMirrors...), fromSecret...), ""},
		"alike": {release, []installconfig.ImageSource{like}, "", []Source{
			{"release image " + release, []string{"quay.io"}, true}, {"images of " + like.Source, []string{"like.example.com", "quay.io"}, false},
		}, ""},
		"no host":   {"openshift/release", nil, "", nil, "REGISTRY/REPOSITORY@DIGEST"},
		"no secret": {"", nil, `{"auths":{"quay.io":{"auth":hidden}}}`, nil, "not a JSON object"},
	} {
		got, err := Sources(test.release, test.mirrors, test.secret)
		fixture.Equal(t, name, test.want, got)
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
		}
	}
}
