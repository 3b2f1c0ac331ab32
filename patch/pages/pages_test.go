// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func expired(instead string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, ListMeta: metav1.ListMeta{Continue: instead},
	}}
}

var errRead = errors.New("cannot be read")

// Each page is read once, in order. After a compaction it is read with the new token, unless it is the same.
func TestEach(t *testing.T) {
	t.Parallel()
	type answer struct {
		next string
		err  error
	}
	for name, test := range map[string]struct {
		answers map[string]answer
		read    []string
		err     bool
	}{
		"one":                       {map[string]answer{"": {"", nil}}, []string{""}, false},
		"three":                     {map[string]answer{"": {"a", nil}, "a": {"b", nil}, "b": {"", nil}}, []string{"", "a", "b"}, false},
		"compacted":                 {map[string]answer{"": {"a", nil}, "a": {"", expired("b")}, "b": {"", nil}}, []string{"", "a", "b"}, false},
		"compacted, no token":       {map[string]answer{"": {"a", nil}, "a": {"", expired("")}}, []string{"", "a"}, true},
		"compacted, the same token": {map[string]answer{"": {"a", nil}, "a": {"", expired("a")}}, []string{"", "a"}, true},
		"unreadable":                {map[string]answer{"": {"a", nil}, "a": {"b", errRead}}, []string{"", "a"}, true},
	} {
		var read []string
		err := Each(t.Context(), func(_ context.Context, at string) (string, error) {
			read = append(read, at)
			return test.answers[at].next, test.answers[at].err
		})
		if !slices.Equal(read, test.read) || (err != nil) != test.err {
			t.Errorf("%s: read %q, %v; want %q, an error: %t", name, read, err, test.read, test.err)
		}
	}
}
