// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/testcluster/apiserver"
)

// machine is the endpoint of a machine that starts and stops.
type machine struct {
	monitor.Machine
	*testing.T
	pair tls.Certificate
}

func newMachine(t *testing.T, config *rest.Config) *machine {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("api.sno.example.com", nil, nil)
	apiserver.NoError(t, err)
	m := &machine{T: t, Machine: monitor.Machine{Config: config, Name: "api.sno.example.com", CA: x509.NewCertPool(), Interval: 20 * time.Millisecond}}
	m.CA.AppendCertsFromPEM(certificate)
	m.pair, err = tls.X509KeyPair(certificate, key)
	apiserver.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	apiserver.NoError(t, err)
	m.Address = l.Addr().String() // which nothing serves yet
	apiserver.NoError(t, l.Close())
	return m
}

// serve serves a status until the returned function is called.
func (m *machine) serve(all ...phase.Status) (stop func()) {
	m.Helper()
	l, err := net.Listen("tcp", m.Address)
	apiserver.NoError(m.T, err)
	ctx, cancel := context.WithCancel(m.Context())
	ended := make(chan error)
	go func() {
		ended <- monitor.Serve(ctx, l, m.pair, func() ([]phase.Status, error) { return all, nil })
	}()
	return func() {
		m.Helper()
		cancel()
		apiserver.NoError(m.T, <-ended)
	}
}

// step is what happens while the command waits for something.
type step struct {
	waits string
	do    func()
}

// wait waits for the goal; each step happens when the command reports what it waits for.
func (m *machine) wait(ctx context.Context, goal string, limit time.Duration, steps ...step) error {
	m.Helper()
	err := phase.Run(ctx, []phase.Phase{{Name: goal, Limit: limit, Run: func(ctx context.Context, p *phase.Progress) error { return m.Wait(ctx, goal, p) }}},
		phase.Options{Report: func(s phase.Status) {
			if len(steps) > 0 && strings.Contains(s.Phases[0].WaitingFor, steps[0].waits) {
				do := steps[0].do
				steps = steps[1:]
				do()
			}
		}})
	for _, s := range steps {
		m.Errorf("it did not wait for %q: %v", s.waits, err)
	}
	return err
}

func running(command, name, waits string) phase.Status {
	return phase.Status{Command: command, State: phase.Running, Phases: []phase.Step{{Name: name, State: phase.Running, WaitingFor: waits}}}
}

// The command waits for a machine that is not there yet, installs, restarts and finishes. At the end the cluster has the
// status of all commands (R-BIP-3).
func TestWait(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{"clusterversions.config.openshift.io"}})
	admin := kubernetes.NewForConfigOrDie(server.Config(t, "admin", "system:masters"))
	var up atomic.Bool // the machine's API server
	config := server.Config(t, "wait", "system:masters")
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !up.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	m := newMachine(t, config)
	stop := func() {}
	apiserver.NoError(t, m.wait(t.Context(), monitor.BootstrapComplete, time.Minute,
		step{"connection refused", func() { stop = m.serve(running("bootstrap-in-place", "apply-manifests", "the kind of a.yaml")) }},
		step{"bootstrap-in-place: phase apply-manifests (1 of 1) waits for the kind of a.yaml", func() {
			stop()
			stop = m.serve(phase.Status{Command: "bootstrap-in-place", Phases: []phase.Step{{Name: "reboot", State: phase.Done}}})
		}},
		step{"bootstrap-in-place is done: the machine restarts", func() { stop() }},
		step{m.Address + ": connect: connection refused", func() {
			stop = m.serve(running("post-reboot", "api", ""))
			up.Store(true)
		}},
		step{"post-reboot: phase api (1 of 1)", func() {
			_, err := admin.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"}, Data: map[string]string{"status": "complete"},
			}, metav1.CreateOptions{})
			apiserver.NoError(t, err)
		}}))
	stop()
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "8f1c5f6e-6f0e-4d28-9b0a-3a4f6a3d2b10"}}
	available := func(is configv1.ConditionStatus) {
		version.Status.AvailableUpdates, version.Status.VersionHash = []configv1.Release{}, "h"
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: is, LastTransitionTime: metav1.Now()},
			{Type: "Failing", Status: configv1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: "Cluster operator console is degraded"},
		}
		apiserver.NoError(t, server.Admin(t).Status().Update(t.Context(), version))
	}
	statuses := []phase.Status{running("bootstrap-in-place", "reboot", ""), running("post-reboot", "available", "")}
	apiserver.NoError(t, m.wait(t.Context(), monitor.InstallComplete, time.Minute,
		step{`"sno-install" not found`, func() {
			apiserver.NoError(t, server.Admin(t).Create(t.Context(), version))
			available(configv1.ConditionFalse)
		}},
		step{"ClusterVersion is not available: Failing: Cluster operator console is degraded", func() { available(configv1.ConditionTrue) }},
		step{`configmaps "sno-install" not found`, func() { apiserver.NoError(t, monitor.Publish(t.Context(), admin, statuses, monitor.Installing)) }},
		step{`ConfigMap kube-system/sno-install: not yet`, func() { apiserver.NoError(t, monitor.Publish(t.Context(), admin, statuses, monitor.Complete)) }}))
	published, err := admin.CoreV1().ConfigMaps("kube-system").Get(t.Context(), monitor.Name, metav1.GetOptions{})
	apiserver.NoError(t, err)
	for _, s := range statuses {
		var got phase.Status
		if err := json.Unmarshal([]byte(published.Data[s.Command]), &got); err != nil || got.Phases[0].Name != s.Phases[0].Name {
			t.Errorf("%s: %v in %v", s.Command, err, published.Data)
		}
	}
}

// A phase that a person has to correct ends the command with its error, a time limit with what it waits for.
func TestNotReached(t *testing.T) {
	m := newMachine(t, &rest.Config{Host: "https://127.0.0.1:1"})
	code, stop := phase.ExitInput, m.serve(running("bootstrap-in-place", "api", ""))
	err := m.wait(t.Context(), monitor.InstallComplete, 100*time.Millisecond)
	if !errors.Is(err, phase.ErrLimit) || phase.ExitCode(err) != phase.ExitTimeout || !strings.Contains(err.Error(), "bootstrap-in-place: phase api (1 of 1)") {
		t.Errorf("at the limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := m.wait(ctx, monitor.InstallComplete, time.Minute, step{"phase api", cancel}); !errors.Is(err, context.Canceled) || errors.Is(err, phase.ErrLimit) {
		t.Errorf("interrupted: %v", err)
	}
	stop()
	defer m.serve(phase.Status{Command: "bootstrap-in-place", State: phase.Failed, ExitCode: &code, Phases: []phase.Step{{Name: "render", State: phase.Failed, Error: "etcd-render: reserved"}}})()
	if err := m.wait(t.Context(), monitor.BootstrapComplete, time.Minute); phase.ExitCode(err) != phase.ExitInput || !strings.Contains(err.Error(), "phase render (1 of 1): etcd-render: reserved") {
		t.Errorf("a failed phase: %v", err)
	}
	m.CA = x509.NewCertPool()
	if err := m.wait(t.Context(), monitor.BootstrapComplete, time.Minute); phase.ExitCode(err) != phase.ExitInput || !strings.Contains(err.Error(), "another machine answers") {
		t.Errorf("another machine: %v", err)
	}
}
