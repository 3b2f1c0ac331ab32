// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/requests"
)

func Once(ctx context.Context, o Options) error {
	return o.once(ctx, restarted{})
}

func Decide(o Options, csr *certificatesv1.CertificateSigningRequest, nodes sets.Set[string]) (requests.Verdict, error) {
	known, err := o.inventory(o.Since, false, 0)
	if err != nil {
		return requests.Verdict{}, err
	}
	return o.decide(csr, known, nodes, map[string]int{}), nil
}

func LostAfter(o Options, d time.Duration) Options {
	o.lostAfter = d
	return o
}
