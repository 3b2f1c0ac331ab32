// Package pages reads lists of any length, a page at a time.
package pages

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Each reads page after page. read gets what the page before said where to go on, empty for the first, and returns the same of its
// own, empty for the last.
//
// The first page is of what there is now, where nothing else is asked for, and the others of that same state. When that state is
// compacted away in the middle, the API server goes on with the current one: what was there all the time is still read once.
func Each(ctx context.Context, read func(ctx context.Context, at string) (next string, err error)) error {
	at := ""
	for {
		next, err := read(ctx, at)
		if instead := goOn(err); instead != "" && instead != at {
			at = instead
			continue
		}
		if err != nil || next == "" {
			return err
		}
		at = next
	}
}

// goOn is how to go on where the state that the pages are of has been compacted away; empty for any other error, and for none.
func goOn(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
