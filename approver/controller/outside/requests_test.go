package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/solonode/sno/patch/patchtest"
)

// compact has etcd forget all but the current state.
func compact(t *testing.T, server *patchtest.APIServer) {
	t.Helper()
	call := func(path, body string) []byte {
		answer, err := http.Post(server.EtcdURL()+path, "application/json", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
		}
		return text
	}
	var got struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.Unmarshal(call("/v3/kv/range", `{"key":"eA=="}`), &got); err != nil {
		t.Fatal(err)
	}
	call("/v3/kv/compaction", `{"revision":"`+got.Header.Revision+`","physical":true}`)
}

// Every request for the signer is visited once, whatever the size of a page, also when etcd is compacted in the middle.
func TestEach(t *testing.T) {
	server := shared.Server(t)
	config := server.Config(t, "each", "system:masters")
	client, err := certificatesclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 11 {
		signer := "example.com/ours"
		if i%4 == 3 {
			signer = "example.com/others"
		}
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("each-%02d", i)}}
		r.Spec.SignerName, r.Spec.Usages, r.Spec.Request = signer, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}, request(t, "anybody", nil, nil)
		if _, err := client.CertificateSigningRequests().Create(t.Context(), r, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if signer == "example.com/ours" {
			want = append(want, r.Name)
		}
	}
	for _, test := range []struct {
		size    int64
		compact bool
	}{{1, false}, {2, false}, {3, true}, {500, false}} {
		reader := &requests{client: client.CertificateSigningRequests(), pageSize: test.size}
		var got []string
		from, err := reader.each(t.Context(), "example.com/ours", func(r *certificatesv1.CertificateSigningRequest) error {
			got = append(got, r.Name)
			if test.compact && len(got) == 1 {
				// A write first, or what is compacted is what the pages are of.
				server.Namespace(t)
				compact(t, server)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) || from == "" {
			t.Errorf("pages of %d: %v from %q (%v), want %v", test.size, got, from, err, want)
		}
	}
	enough := errors.New("enough")
	reader := &requests{client: client.CertificateSigningRequests(), pageSize: 2}
	if _, err := reader.each(t.Context(), "example.com/ours", func(*certificatesv1.CertificateSigningRequest) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a visit that fails: %v", err)
	}
}
