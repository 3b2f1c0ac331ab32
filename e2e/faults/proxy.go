// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// Proxy is a proxy of the API server for one controller. The controller authenticates with its token as without it.
type Proxy struct {
	process   string // its name, for marks
	url       string
	ca        []byte
	server    *http.Server
	upstream  *url.URL
	transport http.RoundTripper
	reverse   *httputil.ReverseProxy

	mu        sync.Mutex
	run       int // of the process
	requests  int // of all runs, for marks
	writes    int // of this run, without reports
	last      time.Time
	trap      *Trap
	faults    *Faults
	watches   map[int]context.CancelFunc
	figures   Figures        // of the time while faults are on
	held      sync.WaitGroup // requests that continue without their client
	delivered int
}

// Mode is what happens to the request at which a Trap acts.
type Mode string

// The modes.
const (
	BeforeRequest Mode = "before a write"       // the request is lost
	AfterRequest  Mode = "after a write"        // its answer is lost
	Delayed       Mode = "with a write delayed" // the request arrives after the end of the process
	AnyMoment     Mode = "at any moment"        // by time
)

// Trap calls a function at a write, reports not counted.
type Trap struct {
	At   int // counted from 1
	Mode Mode
	// Act ends or stops the process.
	Act func()
	// Release delivers a Delayed request when it is closed.
	Release <-chan struct{}
}

// Faults are faults of the API server.
type Faults struct {
	random *rand.Rand
	// share is the part of the requests with a fault. Those for Leases have none unless all have: they have a priority
	// level of their own in the API server, and a leader election that fails once waits for a minute.
	share float64
	watch time.Duration // the longest time until a watch is dropped; 0 for no limit
	// refuse refuses all writes of objects: of half of them with 429, of the others with another error. The other
	// requests have no fault.
	refuse bool
	half   uint32 // selects the objects with 429
}

const marker = "soak."

// mark returns an audit ID, from which processOf returns the process and its run.
func mark(process string, run, request int) string {
	return fmt.Sprintf("%s%s#%d.%d", marker, process, run, request)
}

func processOf(auditID string) string {
	rest, is := strings.CutPrefix(auditID, marker)
	at := strings.LastIndex(rest, ".")
	if !is || at < 0 {
		return ""
	}
	return rest[:at]
}

// StartProxy starts a proxy for a process. The configuration names the API server; its credentials are not used.
func StartProxy(process string, config *rest.Config) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(config)
	upstream, err := url.Parse(anonymous.Host)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{
		process: process, url: "https://" + listener.Addr().String(), ca: certificate, upstream: upstream, transport: transport,
		watches: map[int]context.CancelFunc{}, figures: Figures{Writes: map[string]int{}, Injected: map[string]int{}}, last: time.Now(),
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // until Stop
	return p, nil
}

type connKey struct{}

// Stop ends the proxy and its connections.
func (p *Proxy) Stop() {
	_ = p.server.Close() // nothing is left to do
	p.held.Wait()
}

// Kubeconfig writes a copy of a kubeconfig file with the address of the proxy, and returns its path.
func (p *Proxy) Kubeconfig(path string) (string, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = p.url, p.ca, ""
	}
	path = strings.TrimSuffix(path, ".kubeconfig") + "-" + p.process + ".kubeconfig"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}

// NextRun is called before each start of the process. It returns the mark of the run, which writes have as Process.
func (p *Proxy) NextRun() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run++
	p.writes, p.trap, p.last = 0, nil, time.Now()
	return p.process + "#" + strconv.Itoa(p.run)
}

// Arm sets a trap, nil for none, and counts writes from here.
func (p *Proxy) Arm(trap *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.trap = 0, trap
}

// Writes returns the number of writes, without reports, since the start of the process or Arm.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// Quiet returns for how long there was no request except watches, events, and those for Leases.
func (p *Proxy) Quiet() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last)
}

// SetFaults turns faults on, or off with nil, and drops all watches.
func (p *Proxy) SetFaults(faults *Faults) {
	p.mu.Lock()
	p.faults = faults
	watches := slices.Collect(maps.Values(p.watches))
	p.mu.Unlock()
	for _, drop := range watches {
		drop()
	}
}

// Figures are the requests and faults while faults were on.
type Figures struct {
	Requests int
	// Writes are the writes of objects by their method, path and field manager, so that a number is of one client.
	Writes   map[string]int
	Injected map[string]int // faults by name
	// Lost is the number of writes that were carried out and whose answers were lost.
	Lost int
}

// Figures returns the figures.
func (p *Proxy) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	figures := p.figures
	figures.Writes, figures.Injected = maps.Clone(figures.Writes), maps.Clone(figures.Injected)
	return figures
}

// Delivered waits for the requests that continue without their client, and returns their number.
func (p *Proxy) Delivered() int {
	p.held.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delivered
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

func isReportRequest(r *http.Request) bool {
	for _, resource := range []string{"/leases", "/events", "reviews"} {
		if strings.Contains(r.URL.Path, resource) {
			return true
		}
	}
	return false
}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "1" || watch == "true")
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests++
	number := p.requests
	r.Header.Set("Audit-ID", mark(p.process, p.run, number))
	if !isReportRequest(r) && !isWatch(r) {
		p.last = time.Now()
	}
	var trap *Trap
	if isWrite(r) && !isReportRequest(r) {
		p.writes++
		if p.trap != nil && p.writes == p.trap.At {
			trap, p.trap = p.trap, nil
		}
	}
	fault := ""
	watch := time.Duration(0)
	if p.faults != nil {
		p.figures.Requests++
		if isWrite(r) && !isReportRequest(r) {
			p.figures.Writes[r.Method+" "+r.URL.Path+" by "+r.URL.Query().Get("fieldManager")]++
		}
		if fault = p.faults.draw(r); fault != "" {
			p.figures.Injected[fault]++
		}
		if p.faults.watch > 0 {
			watch = time.Duration(p.faults.random.Int64N(int64(p.faults.watch)))
		}
	}
	p.mu.Unlock()

	switch {
	case trap != nil:
		p.spring(r, trap)
		panic(http.ErrAbortHandler)
	case isWatch(r):
		p.watch(w, r, number, watch, fault)
	case fault != "":
		p.fail(w, r, fault)
	case isWrite(r):
		p.forward(w, r)
	default:
		p.reverse.ServeHTTP(w, r)
	}
}

// forward sends a write that also continues when its client ends. The API server could otherwise end between the two
// parts of an eviction, which occupies the budget for two minutes.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	detached, err := detach(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(detached.Context()) // with one that has no end, ReverseProxy observes the connection
	defer cancel()
	p.held.Add(1)
	defer p.held.Done()
	p.reverse.ServeHTTP(w, detached.WithContext(ctx))
}

// spring carries a trap out.
func (p *Proxy) spring(r *http.Request, trap *Trap) {
	switch trap.Mode {
	case BeforeRequest, AnyMoment:
		trap.Act()
	case AfterRequest:
		_, _ = p.deliver(r) // the process does not get the answer
		trap.Act()
	case Delayed:
		request, err := detach(r)
		trap.Act()
		if err != nil {
			return
		}
		p.held.Add(1)
		go func() {
			defer p.held.Done()
			<-trap.Release
			if answer, err := p.deliver(request); err == nil && answer.StatusCode < http.StatusMultipleChoices {
				p.mu.Lock()
				p.delivered++
				p.mu.Unlock()
			}
		}()
	}
}

// detach returns the request with a body that does not depend on the connection.
func detach(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read a request: %w", err)
	}
	detached := r.Clone(context.WithoutCancel(r.Context()))
	detached.Body = io.NopCloser(strings.NewReader(string(body)))
	detached.ContentLength = int64(len(body))
	return detached, nil
}

// deliver sends a request to the API server, also if the client has gone, and reads the answer.
func (p *Proxy) deliver(r *http.Request) (*http.Response, error) {
	r, err := detach(r)
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host, r.Host, r.RequestURI = p.upstream.Scheme, p.upstream.Host, p.upstream.Host, ""
	answer, err := p.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("deliver a request: %w", err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(strings.NewReader(string(body)))
	return answer, err
}

// The names of the faults.
const (
	fault429       = "429"
	fault500       = "500"
	fault503       = "503"
	faultReset     = "connection reset before the request"
	faultLost      = "connection reset before the answer"
	faultTruncated = "connection reset in the answer"
	faultWatch     = "watch dropped"
)

// draw returns the fault of a request, empty for none.
func (f *Faults) draw(r *http.Request) string {
	if f.refuse {
		return f.refusal(r)
	}
	if f.random.Float64() >= f.share || f.share < 1 && strings.Contains(r.URL.Path, "/leases") {
		return ""
	}
	all := []string{fault429, fault500, fault503, faultReset, faultLost, faultTruncated}
	return all[f.random.IntN(len(all))]
}

func (f *Faults) refusal(r *http.Request) string {
	if !isWrite(r) || isReportRequest(r) {
		return ""
	}
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, r.URL.Path) // has no error
	if (sum.Sum32()+f.half)%2 == 0 {
		return fault429
	}
	return []string{fault500, fault503}[f.random.IntN(2)]
}

func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, fault string) {
	switch fault {
	case fault429:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, "TooManyRequests")
	case fault500:
		answer(w, http.StatusInternalServerError, "InternalError")
	case fault503:
		answer(w, http.StatusServiceUnavailable, "ServiceUnavailable")
	case faultReset:
		reset(r)
	default:
		got, err := p.deliver(r)
		if err == nil && isWrite(r) && !isReportRequest(r) && got.StatusCode < http.StatusMultipleChoices {
			p.mu.Lock()
			p.figures.Lost++
			p.mu.Unlock()
		}
		if err == nil && fault == faultTruncated {
			body, _ := io.ReadAll(got.Body) // from memory
			maps.Copy(w.Header(), got.Header)
			w.WriteHeader(got.StatusCode)
			_, _ = w.Write(body[:len(body)/2]) // the client sees it
			_ = http.NewResponseController(w).Flush()
		}
		reset(r)
	}
}

// answer answers as the API server does.
func answer(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"a fault run","code":%d}`, reason, code)
}

// reset resets the connection, with all of its requests.
func reset(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if secure, ok := conn.(*tls.Conn); ok {
		if tcp, ok := secure.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
			_ = tcp.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

// watch serves a watch until it is dropped, or, with a fault, fails it.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, number int, after time.Duration, fault string) {
	if fault != "" && fault != faultLost && fault != faultTruncated {
		p.fail(w, r, fault)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	p.mu.Lock()
	p.watches[number] = func() { cancel(errDropped) }
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, number)
		if errors.Is(context.Cause(ctx), errDropped) {
			p.figures.Injected[faultWatch]++
		}
		p.mu.Unlock()
	}()
	if after > 0 {
		timer := time.AfterFunc(after, func() { cancel(errDropped) })
		defer timer.Stop()
	}
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

var errDropped = errors.New("watch dropped")
