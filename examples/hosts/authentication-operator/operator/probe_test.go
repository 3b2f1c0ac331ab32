// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

func apiServerStub(t *testing.T, handler http.HandlerFunc) (address string, config *rest.Config) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.Listener.Addr().String(), &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func TestProbe(t *testing.T) {
	const path = "/.well-known/oauth-authorization-server"
	asked := 0
	good, trust := apiServerStub(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case path:
			w.WriteHeader(http.StatusOK)
		case "/moved":
			http.Redirect(w, r, path, http.StatusFound)
		case "/third-time":
			if asked++; asked < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		if r.Header.Get("Authorization") != "" {
			t.Error("credentials were sent")
		}
	})
	trust.BearerToken = "secret"
	other, _ := apiServerStub(t, func(http.ResponseWriter, *http.Request) {})
	closed := httptest.NewUnstartedServer(nil).Listener
	gone := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "192.0.2.1:6443"

	for _, test := range []struct {
		name       string
		path       string
		serverName string
		endpoints  []string
		connectTo  Addresses
		want       []bool
		message    string
	}{
		{"served", path, "example.com", []string{good}, nil, []bool{true}, ""},
		{"another path", "/else", "example.com", []string{good}, nil, []bool{false}, "404"},
		{"moved", "/moved", "example.com", []string{good}, nil, []bool{false}, "302"},
		{"the third time", "/third-time", "example.com", []string{good}, nil, []bool{true}, ""},
		{"gone", path, "example.com", []string{gone}, nil, []bool{false}, "refused"},
		{"one of two", path, "example.com", []string{gone, good}, nil, []bool{false, true}, "refused"},
		{"another name", path, "kubernetes.default.svc", []string{good}, nil, []bool{false}, "certificate"},
		{"connected elsewhere", path, "example.com", []string{elsewhere}, Addresses{elsewhere: good}, []bool{true}, ""},
		{"none", path, "example.com", nil, nil, []bool{}, ""},
	} {
		options := DefaultOptions()
		options.WellKnownPath, options.WellKnownServerName, options.ConnectTo = test.path, test.serverName, test.connectTo
		p, err := newProber(trust, options)
		if err != nil {
			t.Fatal(err)
		}
		p.tries = wait.Backoff{Steps: 3, Duration: time.Millisecond}
		got, message := []bool{}, ""
		for _, err := range p.all(t.Context(), test.endpoints) {
			got = append(got, err == nil)
			if err != nil {
				message += err.Error()
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", test.name, diff, message)
		}
		if !strings.Contains(message, test.message) {
			t.Errorf("%s: %q is not in %q", test.name, test.message, message)
		}
	}

	options := DefaultOptions()
	options.WellKnownServerName = "example.com"
	p, err := newProber(&rest.Config{}, options)
	if err != nil {
		t.Fatal(err)
	}
	p.tries.Steps = 1
	if err := p.all(t.Context(), []string{other})[0]; err == nil {
		t.Error("a server of an unknown authority was trusted")
	}
	if _, err := newProber(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}, options); err == nil {
		t.Error("no error for an authority that is none")
	}
	if err := p.ask(t.Context(), "not an address"); err == nil || errors.Is(err, errNotServed) {
		t.Errorf("not an address: %v", err)
	}
}

func TestEndpoints(t *testing.T) {
	slice := func(name string, port int32, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{{Name: ptr.To(name), Port: ptr.To(port)}},
		}
	}
	endpoint := func(ready *bool, addresses ...string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	got := endpoints([]discoveryv1.EndpointSlice{
		slice("https", 6443, endpoint(nil, "192.0.2.1"), endpoint(ptr.To(false), "192.0.2.2"), endpoint(ptr.To(true), "192.0.2.3"), endpoint(nil)),
		slice("metrics", 9090, endpoint(nil, "192.0.2.1")),
		slice("https", 443, endpoint(nil, "2001:db8::1")),
	})
	if diff := cmp.Diff([]string{"192.0.2.1:6443", "192.0.2.3:6443", "[2001:db8::1]:443"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
