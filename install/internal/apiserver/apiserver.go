// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Start starts an API server, which ends with the test.
func Start(t testing.TB) *envtest.Environment {
	t.Helper()
	var s Shared
	s.Running(t)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return &s.Environment
}

// Shared is an API server for all tests of a binary. The first test that needs it starts it.
type Shared struct {
	envtest.Environment
	// Prepare is called after the start; nil does nothing.
	Prepare func(context.Context, *rest.Config) error

	once sync.Once
	err  error
}

// Running returns the administrator's client config, without a limit of requests.
func (s *Shared) Running(t testing.TB) *rest.Config {
	t.Helper()
	s.once.Do(func() {
		if _, s.err = s.Start(); s.err != nil {
			return
		}
		s.Config.QPS = -1
		if s.Prepare != nil {
			s.err = s.Prepare(t.Context(), s.Config)
		}
	})
	if s.err != nil {
		t.Fatalf("start an API server (KUBEBUILDER_ASSETS names the folder of its programs): %v", s.err)
	}
	return s.Config
}

// Main runs the tests, stops the API server, and returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	_ = s.Stop()
	return code
}
