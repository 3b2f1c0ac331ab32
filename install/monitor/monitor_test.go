// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/phase"
)

const failed = `{"command": "bootstrap-in-place", "state": "Failed", "exitCode": 2, "advice": "change it", "phases": [
	{"name": "preflight", "state": "Done"}, {"name": "render", "state": "Failed",
	 "error": "mco-render: registry.example.com/mco@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: tls/root-ca.crt: missing or empty; Authorization: Bearer abcdefghijklmnop.qrstuvwxyz"}]}`

// served serves files by TLS, and returns the machine.
func served(t *testing.T, files ...string) Machine {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("api.sno.example.com", nil, nil)
	fixture.NoError(t, err)
	pair := fixture.Must(tls.X509KeyPair(certificate, key))
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, l, pair, func() ([]phase.Status, error) { return Read(files...) })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	m := Machine{Address: l.Addr().String(), Name: "api.sno.example.com", CA: x509.NewCertPool()}
	m.CA.AppendCertsFromPEM(certificate)
	return m
}

// Others read the status by TLS, without secrets, and can do nothing else (R-BIP-3).
func TestServe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "status.json")
	m := served(t, filepath.Join(dir, "no-such-file"), file)
	client := m.client()
	_, err := m.fetch(t.Context(), client)
	fixture.Fails(t, "before the first phase", err, errNoStatus)
	for text, want := range map[string]string{"{": "500 Internal Server Error", failed: ""} {
		fixture.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		all, err := m.fetch(t.Context(), client)
		if want != "" {
			fixture.Fails(t, text, err, want)
			continue
		}
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		err = state(all)
		fixture.Fails(t, "state", err, phase.ErrInput, "phase render (2 of 2)", "change it",
			"mco-render: registry.example.com/mco@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: tls/root-ca.crt: missing or empty")
		if strings.Contains(err.Error(), "qrstuvwxyz") {
			t.Errorf("it has a token: %v", err)
		}
	}
	for _, request := range []struct{ method, path string }{{"POST", Path}, {"DELETE", Path}, {"GET", "/"}, {"GET", Path + "/../etc/passwd"}} {
		r := fixture.Must(http.NewRequestWithContext(t.Context(), request.method, "https://"+m.Name+request.path, nil))
		answer := fixture.Must(client.Do(r))
		if answer.StatusCode < 400 {
			t.Errorf("%s %s: %s", request.method, request.path, answer.Status)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}

// Another machine at the address ends the wait; its status is not read.
func TestAnotherMachine(t *testing.T) {
	m, other := served(t), served(t)
	m.CA = other.CA
	_, err := m.fetch(t.Context(), m.client())
	fixture.Fails(t, "another CA", err, errOther, phase.ErrInput, m.Address)
	m = other
	m.Name = "api.other.example.com"
	_, err = m.fetch(t.Context(), m.client())
	fixture.Fails(t, "another name", err, errOther)
}

// What a person has to change ends the wait, all else is repeated.
func TestState(t *testing.T) {
	code := phase.ExitFailed
	at := func(s phase.Step) []phase.Status {
		return []phase.Status{{Command: "earlier"}, {Command: "post-reboot", ExitCode: &code, Phases: []phase.Step{{Name: "api", State: phase.Done}, s, {Name: "join", State: phase.Pending}}}}
	}
	for want, all := range map[string][]phase.Status{
		"post-reboot: phase operators (2 of 3) waits for etcd: not yet":                      at(phase.Step{Name: "operators", State: phase.Running, WaitingFor: "etcd"}),
		"post-reboot: phase operators (2 of 3): not yet":                                     at(phase.Step{Name: "operators", State: phase.Running}),
		"post-reboot: phase operators (2 of 3) failed, and is repeated: no network: not yet": at(phase.Step{Name: "operators", State: phase.Failed, Error: "no network"}),
		"post-reboot: phase join (3 of 3): not yet":                                          at(phase.Step{Name: "operators", State: phase.Done}),
		"bootstrap-in-place is done: the machine restarts":                                   {{Command: "bootstrap-in-place", Phases: []phase.Step{{Name: "reboot", State: phase.Done}}}},
	} {
		if err := state(all); err.Error() != want || errors.Is(err, phase.ErrInput) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
