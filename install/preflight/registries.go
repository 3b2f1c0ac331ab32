// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/net/http/httpproxy"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/phase"
)

type answer struct {
	err error
	// date is the registry's clock, and at this machine's clock at the same time.
	date, at time.Time
}

var errBundle = errors.New("additionalTrustBundle has no certificate in PEM")

var errStatus = errors.New("not the answer of a registry")

// registries checks that a registry of each source answers, with the proxy and the trust bundle of a container runtime.
func (c *checker) registries(ctx context.Context) []Finding {
	answers, err := c.ask(ctx)
	if err != nil {
		return []Finding{failed("correct it: a list of certificates in PEM", "%v", err)}
	}
	var found []Finding
	for _, source := range c.Sources {
		var answering []string
		var errs []error
		for _, host := range source.Hosts {
			if err := answers[host].err; err != nil {
				errs = append(errs, err)
				continue
			}
			answering = append(answering, host)
		}
		f := ok("%s: %s", source.For, strings.Join(answering, ", "))
		if len(answering) == 0 {
			text := strings.ReplaceAll(fmt.Sprint(errors.Join(errs...)), "\n", "; ")
			f = warning(advice(errs), "%s: no registry answers: %s", source.For, text)
			if source.Required {
				f.State = StateFailed
			}
		}
		found = append(found, f)
	}
	return found
}

func advice(errs []error) string {
	err := errors.Join(errs...)
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return "add the CA of the registry to additionalTrustBundle"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "compare the machine's clock with the certificate of the registry, and correct the wrong one"
	case errors.As(err, &dns):
		return "correct the name of the registry, or the DNS of this machine"
	case errors.Is(err, errStatus):
		return "correct the name of the registry; a proxy or a load balancer may have answered instead"
	}
	return "let this machine reach the registry by HTTPS: firewall, proxy, noProxy; or add a mirror to imageDigestSources"
}

func (c *checker) ask(ctx context.Context) (map[string]answer, error) {
	if c.answers != nil {
		return c.answers, nil
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: c.Timeout}
	var hosts []string
	for _, source := range c.Sources {
		hosts = append(hosts, source.Hosts...)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	found := make([]answer, len(hosts))
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() { found[i] = c.get(ctx, client, host) })
	}
	wait.Wait()
	c.answers = map[string]answer{}
	for i, host := range hosts {
		c.answers[host] = found[i]
	}
	return c.answers, nil
}

// get requests the API of a registry. A registry that requires a password has it too.
func (c *checker) get(ctx context.Context, client *http.Client, host string) answer {
	address := (&url.URL{Scheme: "https", Host: host, Path: "/v2/"}).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{err: err}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close() //nolint:errcheck // nothing is read from it
	a := answer{at: c.Now()}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		a.date = date
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnauthorized {
		a.err = fmt.Errorf("%s: %s: %w", address, response.Status, errStatus)
	}
	return a
}

// transport returns a transport with the node's proxy, trust bundle, clock and DNS.
func (c *checker) transport() (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if c.TrustBundle != "" && !roots.AppendCertsFromPEM([]byte(c.TrustBundle)) {
		return nil, errBundle
	}
	var proxy httpproxy.Config
	if c.Proxy != nil {
		proxy = httpproxy.Config{HTTPProxy: c.Proxy.HTTPProxy, HTTPSProxy: c.Proxy.HTTPSProxy, NoProxy: c.NoProxy}
	}
	find := proxy.ProxyFunc()
	return &http.Transport{
		Proxy:             func(r *http.Request) (*url.URL, error) { return find(r.URL) },
		DialContext:       (&net.Dialer{Resolver: c.Resolver}).DialContext,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Time: c.Now},
		ForceAttemptHTTP2: true,
	}, nil
}

// Source is a source of images.
type Source struct {
	For string
	// Hosts are its registries, with ports. One of them has to answer.
	Hosts []string
	// Required means that the installation fails without it.
	Required bool
}

// Sources returns the sources of the release image, which is required, of images with mirrors, and of the pull secret.
// release may be "".
func Sources(release string, mirrors []installconfig.ImageSource, pullSecret string) ([]Source, error) {
	var found []Source
	if release != "" {
		host, _, isPath := strings.Cut(release, "/")
		if !isPath || !strings.ContainsAny(host, ".:") && host != "localhost" {
			return nil, fmt.Errorf("release image %q: %w: write REGISTRY/REPOSITORY@DIGEST", release, phase.ErrInput)
		}
		s := Source{For: "release image " + release, Hosts: []string{registry(host)}, Required: true}
		longest := 0 // the longest match counts, as for container runtimes
		for _, m := range mirrors {
			if isOf(release, m.Source) && len(m.Source) > longest {
				s.Hosts, longest = hostsOf(m), len(m.Source)
			}
		}
		found = append(found, s)
	}
	for _, m := range mirrors {
		found = append(found, Source{For: "images of " + m.Source, Hosts: hostsOf(m)})
	}
	var secret struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if pullSecret != "" {
		if err := json.Unmarshal([]byte(pullSecret), &secret); err != nil {
			// The text of a JSON error may have a part of the secret.
			return nil, fmt.Errorf("pull secret: %w: not a JSON object with auths", phase.ErrInput)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Auths)) {
		host := registry(key)
		known := slices.ContainsFunc(found, func(s Source) bool { return slices.Contains(s.Hosts, host) })
		// This entry is for reports about the cluster, and not for a registry.
		if !known && host != "cloud.openshift.com" {
			found = append(found, Source{For: "pull secret, " + key, Hosts: []string{host}})
		}
	}
	return found, nil
}

func isOf(image, repository string) bool {
	rest, found := strings.CutPrefix(image, repository)
	return found && (rest == "" || strings.ContainsAny(rest[:1], "/:@"))
}

// hostsOf returns the registries in the order in which a container runtime tries them.
func hostsOf(m installconfig.ImageSource) []string {
	var hosts []string
	for _, mirror := range m.Mirrors {
		hosts = append(hosts, registry(mirror))
	}
	if m.SourcePolicy != configv1.NeverContactSource {
		hosts = append(hosts, registry(m.Source))
	}
	return hosts
}

// registry returns the host of a repository, or of a key in a pull secret, which may be a URL.
func registry(name string) string {
	_, after, isURL := strings.Cut(name, "://")
	if isURL {
		name = after
	}
	host, _, _ := strings.Cut(name, "/")
	if host == "docker.io" || host == "index.docker.io" {
		return "registry-1.docker.io"
	}
	return host
}
