// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// One that is not valid yet is due now.
func NextRenewals(objects []runtime.Object, now time.Time) []Renewal {
	var due []Renewal
	for _, c := range certificates(objects) {
		at := c.end.Add(-c.end.Sub(c.from) / 5)
		if refresh, err := time.ParseDuration(c.GetAnnotations()[refreshAnnotation]); err == nil && c.from.Add(refresh).Before(at) {
			at = c.from.Add(refresh)
		}
		if c.notYet(now) {
			at = now
		}
		due = append(due, Renewal{Object: c.GetNamespace() + "/" + c.GetName(), At: at, End: c.end})
	}
	slices.SortStableFunc(due, func(a, b Renewal) int { return a.At.Compare(b.At) })
	return due
}

// ErrClock is in the error of CheckClock.
var ErrClock = errors.New("the clock was ahead when it was made, or is behind now")

// clockStep is how far a time server may set a clock back without harm: certificates begin before they are made.
const clockStep = 10 * time.Minute

// CheckClock returns an ErrClock if a certificate that loops renew is not valid yet. Loops compare the clock with the
// end only, so nothing would be due for as long as the clock was ahead, and what they would renew by a clock that is
// behind now would end early.
func CheckClock(objects []runtime.Object, now time.Time) error {
	var newest *certificate
	for _, c := range certificates(objects) {
		if c.notYet(now) && (newest == nil || c.from.After(newest.from)) {
			newest = &c
		}
	}
	if newest == nil {
		return nil
	}
	return fmt.Errorf("the certificate %s/%s is valid from %s, and the clock has %s: %w", newest.GetNamespace(), newest.GetName(),
		newest.from.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrClock)
}

// WithoutFuture returns the objects, of which those with a certificate that is not valid yet lack the annotations of
// its validity, so that loops make a new one.
func WithoutFuture(objects []runtime.Object, now time.Time) ([]runtime.Object, error) {
	out := slices.Clone(objects)
	for _, c := range certificates(objects) {
		if !c.notYet(now) {
			continue
		}
		changed := objects[c.at].DeepCopyObject()
		accessor, err := meta.Accessor(changed)
		if err != nil {
			return nil, fmt.Errorf("Secret %s/%s: %w", c.GetNamespace(), c.GetName(), err) //nolint:staticcheck // a kind
		}
		annotations := accessor.GetAnnotations()
		delete(annotations, notBeforeAnnotation)
		delete(annotations, notAfterAnnotation)
		accessor.SetAnnotations(annotations)
		out[c.at] = changed
	}
	return out, nil
}

// certificate is a Secret with a certificate that loops renew, by its annotations.
type certificate struct {
	metav1.Object
	at        int // among the objects
	from, end time.Time
}

func (c certificate) notYet(now time.Time) bool { return c.from.After(now.Add(clockStep)) }

// certificates returns the Secrets with certificates that loops renew, without copies of revisions.
func certificates(objects []runtime.Object) []certificate {
	var all []certificate
	for at, object := range objects {
		secret, err := meta.Accessor(object)
		if err != nil || secret.GetLabels()[inputs.ManagedLabel] == "" || secret.GetLabels()[copyLabel] != "" {
			continue
		}
		from, noFrom := time.Parse(time.RFC3339, secret.GetAnnotations()[notBeforeAnnotation])
		end, noEnd := time.Parse(time.RFC3339, secret.GetAnnotations()[notAfterAnnotation])
		if noFrom == nil && noEnd == nil {
			all = append(all, certificate{secret, at, from, end})
		}
	}
	return all
}
