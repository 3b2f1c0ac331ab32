// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/go-cmp/cmp"
)

const engine = "application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1"

// It refuses what the real server refuses, and serves the config of the pool with the kubeconfig (U-INS-17).
func TestServer(t *testing.T) {
	hostname := file("/etc/motd", 0o644, []byte("worker\n"))
	pool, err := json.Marshal(types.Config{Ignition: types.Ignition{Version: "3.2.0"}, Storage: types.Storage{Files: []types.File{hostname}}})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("kind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pools := fstest.MapFS{"worker.ign": {Data: pool}, "later.ign": {Data: []byte(`{"ignition":{"version":"3.6.0"}}`)}}
	served := httptest.NewTLSServer(server{pools: pools, kubeconfig: kubeconfig}.handler())
	defer served.Close()
	for _, test := range []struct {
		method, path, accept string
		status               int
	}{
		{"GET", "/config/worker", engine, 200},
		{"HEAD", "/config/worker", engine, 200},
		{"GET", "/config/worker", "application/vnd.coreos.ignition+json;version=3.2.0", 200},
		{"GET", "/config/worker", "", 400},
		{"GET", "/config/worker", "*/*", 400},
		{"GET", "/config/worker", "application/json;version=3.2.0", 400},
		{"GET", "/config/worker", "application/vnd.coreos.ignition+json", 400},
		{"GET", "/config/worker", "application/vnd.coreos.ignition+json;version=3.1.0", 400},
		{"GET", "/config/worker", "application/vnd.coreos.ignition+json;version=4.0.0", 400},
		{"POST", "/config/worker", engine, 405},
		{"GET", "/config/unknown", engine, 500},
		{"GET", "/config/later", engine, 500},
		{"GET", "/config/", engine, 500},
		{"GET", "/healthz", "", 200},
		{"PUT", "/healthz", "", 405},
		{"GET", "/", engine, 404},
		{"GET", "/worker", engine, 404},
		{"DELETE", "/other", engine, 405},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, served.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", test.accept)
		response, err := served.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != test.status {
			t.Errorf("%s %s, accepting %q: %s, want %d", test.method, test.path, test.accept, response.Status, test.status)
		}
		if test.method != "GET" || test.path != "/config/worker" || response.StatusCode != http.StatusOK {
			continue
		}
		var got types.Config
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := []types.File{hostname, file("/etc/kubernetes/kubeconfig", 0o600, []byte("kind: Config\n"))}
		if diff := cmp.Diff(want, got.Storage.Files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	// Without the kubeconfig machines could not join.
	if err := os.Remove(kubeconfig); err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/config/worker", nil)
	request.Header.Set("Accept", engine)
	server{pools: pools, kubeconfig: kubeconfig}.handler().ServeHTTP(recorder, request)
	if recorder.Code != http.StatusInternalServerError {
		t.Errorf("without a kubeconfig: %d", recorder.Code)
	}
}
