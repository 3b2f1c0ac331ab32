// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A cluster that is no hub is named as what it is, before anything else is read or written.
func TestNoHub(t *testing.T) {
	for want, versions := range map[string]string{
		"not a hub of Open Cluster Management: the cluster does not serve cluster.open-cluster-management.io/v1": "apps/v1",
		"this is one of its managed clusters; use the kubeconfig of the hub":                                     "cluster.open-cluster-management.io/v1alpha1 work.open-cluster-management.io/v1",
		"does not serve addon.open-cluster-management.io/v1alpha1; enable its add-on manager":                    "cluster.open-cluster-management.io/v1 work.open-cluster-management.io/v1",
	} {
		var groups []string
		for version := range strings.FieldsSeq(versions) {
			group, name, _ := strings.Cut(version, "/")
			groups = append(groups, fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":%q,"version":%q}]}`, group, version, name))
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api":
				fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, strings.Join(groups, ","))
			default:
				t.Errorf("%s %s", r.Method, r.URL)
			}
		}))
		defer server.Close()
		for _, args := range []string{"fleet status", "fleet plan", "fleet check", "fleet opt-out east-1", "fleet undo east-1"} {
			call{args, 1, "", want + "|!\n\n"}.test(t, "--server", server.URL)
		}
	}
	call{"fleet status", 1, "", "The API server does not answer"}.test(t, "--server", "http://127.0.0.1:1")
}
