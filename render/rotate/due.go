package rotate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Annotations that library-go sets on the Secret of a certificate.
const (
	notBeforeAnnotation = "auth.openshift.io/certificate-not-before"
	notAfterAnnotation  = "auth.openshift.io/certificate-not-after"
)

// Due is when a certificate is renewed if somebody renews.
type Due struct {
	// Object is the Secret, NAMESPACE/NAME.
	Object string
	// At is when 80 % of its time have passed, End when it ends.
	At, End time.Time
}

// Next returns when the certificates among the objects are due, the earliest first.
func Next(objects []runtime.Object) []Due {
	var due []Due
	for _, object := range objects {
		secret, is := object.(*corev1.Secret)
		if !is {
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
		due = append(due, Due{Object: secret.Namespace + "/" + secret.Name, At: end.Add(-end.Sub(from) / 5), End: end})
	}
	slices.SortStableFunc(due, func(a, b Due) int { return a.At.Compare(b.At) })
	return due
}
