// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
)

const (
	notBeforeAnnotation = "auth.openshift.io/certificate-not-before"
	notAfterAnnotation  = "auth.openshift.io/certificate-not-after"
	refreshAnnotation   = "certificates.openshift.io/refresh-period"
	copyLabel           = "operator.openshift.io/controller-instance-name"
)

// Renewal is when a certificate is due.
type Renewal struct {
	Object string
	// At is after 80 % of the validity, earlier for a signer. End is when it expires.
	At, End time.Time
}

// NextRenewals returns when the certificates that loops renew are due, the earliest first, without copies of revisions.
func NextRenewals(objects []runtime.Object) []Renewal {
	var due []Renewal
	for _, object := range objects {
		secret, is := object.(*corev1.Secret)
		if !is || secret.Labels[inputs.ManagedLabel] == "" || secret.Labels[copyLabel] != "" {
			continue
		}
		from, err := time.Parse(time.RFC3339, secret.Annotations[notBeforeAnnotation])
		if err != nil {
			continue
		}
		end, err := time.Parse(time.RFC3339, secret.Annotations[notAfterAnnotation])
		if err != nil {
			continue
		}
		at := end.Add(-end.Sub(from) / 5)
		if refresh, err := time.ParseDuration(secret.Annotations[refreshAnnotation]); err == nil && from.Add(refresh).Before(at) {
			at = from.Add(refresh)
		}
		due = append(due, Renewal{Object: secret.Namespace + "/" + secret.Name, At: at, End: end})
	}
	slices.SortStableFunc(due, func(a, b Renewal) int { return a.At.Compare(b.At) })
	return due
}
