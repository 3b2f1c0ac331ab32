// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

var (
	infrastructure = Object{Group: "config.openshift.io", Version: "v1", Resource: "infrastructures", Name: "cluster"}
	lease          = Object{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Namespace: "example", Name: "lease"}
	// atOnce is a back-off for tests.
	atOnce = wait.Backoff{Duration: time.Millisecond, Steps: 1}
)

const timeout = 10 * time.Second

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := New(Config{Server: server.URL, CA: ca, Token: "secret"}, "agent")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func object(version, value string) string {
	return fmt.Sprintf(`{"metadata":{"name":"cluster","resourceVersion":%q},"status":{"value":%q}}`, version, value)
}

func listOf(version string, items ...string) string {
	return fmt.Sprintf(`{"kind":"List","metadata":{"resourceVersion":%q},"items":[%s]}`, version, strings.Join(items, ","))
}

func event(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

const (
	gone    = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
	missing = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
)

// exchange is a request, as "list" or "watch VERSION", and its response. Without further exchanges the server waits.
type exchange struct {
	want   string
	code   int
	body   string
	broken bool // the connection breaks after the body
}

func TestFollow(t *testing.T) {
	for name, test := range map[string]struct {
		exchanges []exchange
		want      []string
	}{
		"changes": {
			[]exchange{
				{want: "list", body: listOf("1", object("1", "a"))},
				{want: "watch 1", body: event("MODIFIED", object("2", "b")) + event("DELETED", object("3", "b")) + event("ADDED", object("4", "c"))},
				{want: "watch 4"},
			},
			[]string{"a", "b", "none", "c"},
		},
		"no object, and a bookmark": {
			[]exchange{{want: "list", body: listOf("5")}, {want: "watch 5", body: event("BOOKMARK", object("9", ""))}, {want: "watch 9"}},
			[]string{"none"},
		},
		"a broken connection resumes": {
			[]exchange{
				{want: "list", body: listOf("1", object("1", "a"))},
				{want: "watch 1", body: event("MODIFIED", object("2", "b")) + `{"type":"MODI`, broken: true},
				{want: "watch 2", body: event("MODIFIED", object("3", "c"))},
				{want: "watch 3"},
			},
			[]string{"a", "b", "c"},
		},
		"an error of the server resumes": {
			[]exchange{
				{want: "list", code: http.StatusServiceUnavailable}, {want: "list", body: listOf("1", object("1", "a"))},
				{want: "watch 1", code: http.StatusTooManyRequests}, {want: "watch 1", code: http.StatusUnauthorized}, {want: "watch 1"},
			},
			[]string{"a"},
		},
		"an expired version lists": {
			[]exchange{
				{want: "list", body: listOf("1", object("1", "a"))}, {want: "watch 1", code: http.StatusGone, body: gone},
				{want: "list", body: listOf("7", object("6", "b"))}, {want: "watch 7", body: event("ERROR", gone)},
				{want: "list", body: listOf("8")}, {want: "watch 8"},
			},
			[]string{"a", "b", "none"},
		},
		"another error event resumes": {
			[]exchange{
				{want: "list", body: listOf("1", object("1", "a"))},
				{want: "watch 1", body: event("ERROR", `{"kind":"Status","reason":"InternalError","code":500}`)}, {want: "watch 1"},
			},
			[]string{"a"},
		},
		"the kind is not served, and then is": {
			[]exchange{
				{want: "list", code: http.StatusNotFound, body: missing}, {want: "list", code: http.StatusNotFound, body: "404 page not found"},
				{want: "list", body: listOf("1", object("1", "a"))}, {want: "watch 1", code: http.StatusNotFound, body: missing},
				{want: "list", body: listOf("2", object("2", "b"))}, {want: "watch 2"},
			},
			[]string{"not served", "not served", "a", "not served", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), timeout)
			defer stop()
			next := make(chan exchange, len(test.exchanges))
			for _, e := range test.exchanges {
				next <- e
			}
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				got := "list"
				if query.Get("watch") == "true" {
					got = "watch " + query.Get("resourceVersion")
				}
				select {
				case e := <-next:
					if got != e.want || r.URL.Path != "/apis/config.openshift.io/v1/infrastructures" || query.Get("fieldSelector") != "metadata.name=cluster" {
						t.Errorf("request %s %s; want %s", got, r.URL, e.want)
					}
					if r.Header.Get("Authorization") != "Bearer secret" || r.UserAgent() != "agent" {
						t.Errorf("the header is %v", r.Header)
					}
					if e.code != 0 {
						w.WriteHeader(e.code)
					}
					_, _ = w.Write([]byte(e.body))
					if len(next) == 0 && e.body == "" { // the last watch stays open
						w.(http.Flusher).Flush()
						stop()
						<-r.Context().Done()
					}
					if e.broken {
						w.(http.Flusher).Flush()
						panic(http.ErrAbortHandler)
					}
				default:
					t.Errorf("one more request: %s", got)
				}
			})
			var got []string
			client.follow(ctx, infrastructure, atOnce, func(state State) {
				switch {
				case state.NotServed:
					got = append(got, "not served")
				case state.Object == nil:
					got = append(got, "none")
				default:
					status, _ := json.Marshal(state.Object.Object["status"])
					got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(status), `{"value":"`), `"}`))
				}
			})
			if diff := cmp.Diff(test.want, got); diff != "" || len(next) > 0 {
				t.Errorf("%s, %d exchanges are left", diff, len(next))
			}
		})
	}
}
