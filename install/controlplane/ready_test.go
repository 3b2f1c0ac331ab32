// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func TestReady(t *testing.T) {
	answer, code := "ok", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, answer, code) }))
	t.Cleanup(server.Close)
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL}).RESTClient()
	if err := Ready(t.Context(), client); err != nil {
		t.Error(err)
	}
	answer, code = "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed", http.StatusInternalServerError
	if err := Ready(t.Context(), client); !errors.Is(err, ErrNotReady) || err.Error() != "not ready: etcd, poststarthook/rbac/bootstrap-roles" {
		t.Errorf("not ready: %v", err)
	}
	answer, code = "who are you", http.StatusUnauthorized
	if err := Ready(t.Context(), client); err == nil || errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("unauthorized: %v", err)
	}
}
