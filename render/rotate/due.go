package rotate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
)

// Annotations that library-go sets on the Secret of a certificate.
const (
	notBeforeAnnotation = "auth.openshift.io/certificate-not-before"
	notAfterAnnotation  = "auth.openshift.io/certificate-not-after"
	refreshAnnotation   = "certificates.openshift.io/refresh-period"
	// copyLabel is on the copies that a revision has.
	copyLabel = "operator.openshift.io/controller-instance-name"
)

// Due is when a certificate is renewed if somebody renews.
type Renewal struct {
	// Object is the Secret, NAMESPACE/NAME.
	Object string
	// At is when 80 % of its time have passed, or earlier for a signer, and End when it ends.
	At, End time.Time
}

// Next returns when the certificates among the objects that loops renew are due, the earliest first. The copies of a revision stay as they are.
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
