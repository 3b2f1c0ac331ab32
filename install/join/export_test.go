package join

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
)

// Once approves what can be approved now, and returns what is still missing.
func Once(ctx context.Context, o Options) error {
	known, err := o.inventory()
	if err != nil {
		return err
	}
	return o.once(ctx, known)
}

// Decide decides on a request where none was approved yet. The error is that of the Options.
func Decide(o Options, csr *certificatesv1.CertificateSigningRequest, nodes sets.Set[string]) (approver.Verdict, error) {
	known, err := o.inventory()
	if err != nil {
		return approver.Verdict{}, err
	}
	return o.decide(csr, known, nodes, map[string]int{}), nil
}
