package outside

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/solonode/sno/approver/controller/pages"
)

// pageSize is how many requests are held at a time. A request is a few KiB, so a page stays below 2 MiB.
const pageSize = 500

// requests reads certificate signing requests, however many there are, a page at a time.
type requests struct {
	client   certificatesclient.CertificateSigningRequestInterface
	pageSize int64
}

// each visits every request for the signer, one after the other, and returns the resourceVersion from which a watch misses none: that of
// the first page. Whatever comes while the other pages are read, or is only in some of them, is an event after it.
func (r *requests) each(ctx context.Context, signer string, visit func(*certificatesv1.CertificateSigningRequest) error) (string, error) {
	from := ""
	err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
		page, err := r.client.List(ctx, metav1.ListOptions{FieldSelector: selects(signer), Limit: r.pageSize, Continue: at})
		if err != nil {
			return "", err
		}
		if from == "" {
			from = page.ResourceVersion
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return "", err
			}
		}
		return page.Continue, nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the requests for %s: %w", signer, err)
	}
	return from, nil
}

// selects has the API server leave out the requests for other signers, of which anybody may make as many as they like.
func selects(signer string) string { return "spec.signerName=" + signer }
