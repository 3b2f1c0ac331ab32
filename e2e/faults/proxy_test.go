// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// server is an API server that counts what reaches it.
type server struct {
	*testing.T
	mu     sync.Mutex
	marks  []string
	writes int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.marks = append(s.marks, processOf(r.Header.Get("Audit-ID")))
	if r.Method != http.MethodGet {
		s.writes++
	}
	s.mu.Unlock()
	if isWatch(r) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
}

func (s *server) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// proxied returns a proxy of a server, and a client of the proxy.
func proxied(t *testing.T) (*server, *Proxy, *http.Client) {
	t.Helper()
	s := &server{T: t}
	backend := httptest.NewUnstartedServer(s)
	backend.EnableHTTP2 = true
	backend.StartTLS()
	t.Cleanup(backend.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
	p, err := StartProxy("p", &rest.Config{Host: backend.URL, BearerToken: "not to be sent", TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.ca)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return s, p, &http.Client{Transport: transport}
}

// send returns the status code, 0 without a complete answer.
func send(ctx context.Context, client *http.Client, method, url string) int {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if _, err := io.ReadAll(answer.Body); err != nil {
		return 0
	}
	return answer.StatusCode
}

func TestProxyMarksAndCounts(t *testing.T) {
	s, p, client := proxied(t)
	for run, want := range []string{"p#1", "p#2"} {
		if got := p.NextRun(); got != want {
			t.Errorf("run %d is called %s", run+1, got)
		}
		for _, request := range [][2]string{
			{http.MethodGet, "/api/v1/nodes"}, {http.MethodPatch, "/api/v1/nodes/a"}, {http.MethodPost, "/apis/events.k8s.io/v1/events"},
			{http.MethodPut, "/apis/coordination.k8s.io/v1/leases/a"},
		} {
			if code := send(t.Context(), client, request[0], p.url+request[1]); code != http.StatusOK {
				t.Errorf("%v: %d", request, code)
			}
		}
		if got := p.Writes(); got != 1 {
			t.Errorf("%d writes, want one: reports do not count", got)
		}
	}
	if got := strings.Join(s.marks, " "); got != strings.TrimSpace(strings.Repeat("p#1 ", 4)+strings.Repeat("p#2 ", 4)) {
		t.Errorf("marks: %s", got)
	}
	if p.Quiet() > time.Minute {
		t.Error("requests count as quiet")
	}
}

// A trap acts at the chosen write, which reaches the server before, after or not at all.
func TestTrap(t *testing.T) {
	for mode, before := range map[Mode]int{BeforeRequest: 1, AfterRequest: 2, Delayed: 1} {
		t.Run(string(mode), func(t *testing.T) {
			s, p, client := proxied(t)
			p.NextRun()
			release, acted := make(chan struct{}), make(chan int, 1)
			p.Arm(&Trap{At: 2, Mode: mode, Release: release, Act: func() { acted <- s.written() }})
			var codes []int
			for range 3 {
				codes = append(codes, send(t.Context(), client, http.MethodPatch, p.url+"/api/v1/nodes/a"))
			}
			if codes[0] != http.StatusOK || codes[1] != 0 || codes[2] != http.StatusOK {
				t.Errorf("answers: %v, want none to the second", codes)
			}
			if got := <-acted; got != before {
				t.Errorf("%d writes when it acted, want %d", got, before)
			}
			close(release)
			late := 0
			if mode == Delayed {
				late = 1
			}
			if got := p.Delivered(); got != late {
				t.Errorf("%d writes arrived late, want %d", got, late)
			}
			if got, want := s.written(), map[Mode]int{BeforeRequest: 2, AfterRequest: 3, Delayed: 3}[mode]; got != want {
				t.Errorf("%d writes arrived, want %d", got, want)
			}
		})
	}
}

// Every fault is seen by the client, and only writes whose answers are lost reach the server.
func TestProxyFaults(t *testing.T) {
	s, p, client := proxied(t)
	p.NextRun()
	faults := &Faults{random: rand.New(rand.NewPCG(1, 1)), share: 1, watch: time.Millisecond}
	p.SetFaults(faults)
	codes := map[int]int{}
	const requests = 200
	for range requests {
		codes[send(t.Context(), client, http.MethodPatch, p.url+"/api/v1/nodes/a")]++
	}
	at := p.Figures()
	for _, fault := range []string{fault429, fault500, fault503, faultReset, faultLost, faultTruncated} {
		if at.Injected[fault] == 0 {
			t.Errorf("no fault %s", fault)
		}
	}
	if codes[http.StatusOK] > 0 || codes[429] == 0 || codes[500] == 0 || codes[503] == 0 || codes[0] == 0 {
		t.Errorf("answers: %v", codes)
	}
	if got := at.Injected[faultLost] + at.Injected[faultTruncated]; at.Lost != got || s.written() != got {
		t.Errorf("%d lost and %d written, want %d", at.Lost, s.written(), got)
	}
	if at.Requests < requests {
		t.Errorf("%d requests received, want %d or, with repetitions of the transport, more", at.Requests, requests)
	}
	p.SetFaults(nil)
	if code := send(t.Context(), client, http.MethodPatch, p.url+"/api/v1/nodes/a"); code != http.StatusOK {
		t.Errorf("after the faults: %d", code)
	}
}

// Every write of an object is refused, of some objects always with 429, and nothing else.
func TestRefusal(t *testing.T) {
	s, p, client := proxied(t)
	p.NextRun()
	for half := range uint32(2) {
		p.SetFaults(&Faults{random: rand.New(rand.NewPCG(1, 1)), refuse: true, half: half})
		later := 0
		for _, name := range []string{"a", "b", "c", "d"} {
			codes := map[int]int{}
			for range 20 {
				codes[send(t.Context(), client, http.MethodPatch, p.url+"/api/v1/nodes/"+name+"?fieldManager=m")]++
			}
			switch {
			case codes[429] == 20:
				later++
			case codes[500] == 0 || codes[503] == 0 || codes[500]+codes[503] != 20:
				t.Errorf("node %s: %v, want always 429, or 500 and 503", name, codes)
			}
		}
		if later != 2 {
			t.Errorf("429 for %d objects, want 2", later)
		}
	}
	if s.written() > 0 {
		t.Errorf("%d writes reached the server", s.written())
	}
	for _, request := range [][2]string{{http.MethodGet, "/api/v1/nodes/a"}, {http.MethodPut, "/apis/coordination.k8s.io/v1/leases/a"}} {
		if code := send(t.Context(), client, request[0], p.url+request[1]); code != http.StatusOK {
			t.Errorf("%v: %d", request, code)
		}
	}
	want := map[string]int{}
	for _, name := range []string{"a", "b", "c", "d"} {
		want["PATCH /api/v1/nodes/"+name+" by m"] = 40
	}
	if diff := cmp.Diff(want, p.Figures().Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// A change of the faults drops watches, and the faults bound them.
func TestWatchesAreDropped(t *testing.T) {
	_, p, client := proxied(t)
	p.NextRun()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan int)
	go func() { ended <- send(ctx, client, http.MethodGet, p.url+"/api/v1/nodes?watch=true") }()
	for open := 0; open == 0; {
		p.mu.Lock()
		open = len(p.watches)
		p.mu.Unlock()
	}
	p.SetFaults(&Faults{random: rand.New(rand.NewPCG(1, 1)), watch: 10 * time.Millisecond})
	<-ended
	send(ctx, client, http.MethodGet, p.url+"/api/v1/nodes?watch=true")
	if ctx.Err() != nil {
		t.Fatal("a watch is not dropped")
	}
	if got := p.Figures().Injected[faultWatch]; got != 2 {
		t.Errorf("%d watches dropped, want 2", got)
	}
}
