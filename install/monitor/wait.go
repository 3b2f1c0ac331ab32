// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/phase"
)

// Goals of Wait, with the names that openshift-install gives them.
const (
	BootstrapComplete = "bootstrap-complete"
	InstallComplete   = "install-complete"
)

// Machine is a machine that is being installed.
type Machine struct {
	// Config reaches its API server.
	Config *rest.Config
	// Address is host and port of its endpoint, whose certificate is of Name, by CA.
	Address, Name string
	CA            *x509.CertPool
	Interval      time.Duration
}

var (
	errOther     = errors.New("the endpoint has no certificate of this installation: another machine answers, or a clock is wrong")
	errOfPhase   = errors.New("the installation has stopped")
	errNotYet    = errors.New("not yet")
	errNoStatus  = errors.New("no status")
	errRestarted = errors.New("the machine restarts")
)

// Wait waits for a goal. What a person has to change on the machine, or another machine at the address, ends it.
func (m Machine) Wait(ctx context.Context, goal string, p *phase.Progress) error {
	config := rest.CopyConfig(m.Config)
	config.Timeout, config.QPS = requestLimit, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("the kubeconfig: %w: %w", err, phase.ErrInput)
	}
	endpoint := m.client()
	return p.Until(ctx, m.Interval, goal, func(ctx context.Context) error { //nolint:wrapcheck // it has what it waits for
		reached := m.reached(ctx, client, goal)
		if reached == nil {
			return nil
		}
		all, err := m.fetch(ctx, endpoint)
		switch {
		case errors.Is(err, phase.ErrInput):
			return err
		case err == nil:
			return state(all)
		case apierrors.IsNotFound(reached) || errors.Is(reached, ErrNotAvailable) || errors.Is(reached, errNotYet):
			return reached // the API server answers
		}
		// Without the addresses of the connection, which differ each time.
		var operation *net.OpError
		if errors.As(err, &operation) {
			err = operation.Err
		}
		return fmt.Errorf("%s: %w", m.Address, err)
	})
}

// reached returns nil if the cluster has the ConfigMap that marks the goal.
func (m Machine) reached(ctx context.Context, client kubernetes.Interface, goal string) error {
	name := "bootstrap"
	if goal == InstallComplete {
		name = Name
	}
	marker, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && goal == InstallComplete:
		return errors.Join(Available(ctx, client), err)
	case err != nil:
		return err //nolint:wrapcheck // it names the object
	case marker.Data["status"] != Complete:
		err = fmt.Errorf("ConfigMap kube-system/%s: %w", name, errNotYet)
		if goal == InstallComplete {
			err = errors.Join(Available(ctx, client), err)
		}
		return err
	}
	return nil
}

// client connects to the machine whatever the name in the URL is, and verifies its certificate.
func (m Machine) client() *http.Client {
	return &http.Client{Timeout: requestLimit, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: m.CA, ServerName: m.Name, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, m.Address)
		},
	}}
}

// fetch reads the endpoint.
func (m Machine) fetch(ctx context.Context, client *http.Client) ([]phase.Status, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Name+Path, nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the URL
	}
	answer, err := client.Do(request)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return nil, fmt.Errorf("%s: %w: %w: %w", m.Address, errOther, untrusted.Err, phase.ErrInput)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the URL
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s", errNoStatus, answer.Status)
	}
	var all []phase.Status
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: no command has begun", errNoStatus)
	}
	return all, err
}

// state returns what the last command does, as an error.
func state(all []phase.Status) error {
	last := all[len(all)-1]
	for i, p := range last.Phases {
		if p.State == phase.Done {
			continue
		}
		text := fmt.Sprintf("%s: phase %s (%d of %d)", last.Command, p.Name, i+1, len(last.Phases))
		switch {
		case p.State == phase.Failed && last.ExitCode != nil && *last.ExitCode == phase.ExitInput:
			return fmt.Errorf("%w: %s: %s: %s: %w", errOfPhase, text, p.Error, last.Advice, phase.ErrInput)
		case p.State == phase.Failed:
			return fmt.Errorf("%s failed, and is repeated: %s: %w", text, p.Error, errNotYet)
		case p.WaitingFor != "":
			return fmt.Errorf("%s waits for %s: %w", text, p.WaitingFor, errNotYet)
		}
		return fmt.Errorf("%s: %w", text, errNotYet)
	}
	return fmt.Errorf("%s is done: %w", last.Command, errRestarted)
}
