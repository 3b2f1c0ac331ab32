// SPDX-License-Identifier: Apache-2.0

// Package pages reads long lists by pages.
package pages

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Each calls read for each page with the previous continue token, after a compaction with that for the current state.
func Each(ctx context.Context, read func(ctx context.Context, token string) (next string, err error)) error {
	token := ""
	for {
		next, err := read(ctx, token)
		if fresh := freshToken(err); fresh != "" && fresh != token {
			token = fresh
			continue
		}
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// freshToken returns the token after a compaction, "" for any other error.
func freshToken(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
