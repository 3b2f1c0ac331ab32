// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// ErrNotReady is in the error of an API server that answers but is not ready.
var ErrNotReady = errors.New("not ready")

// Ready returns nil if the API server is ready, and otherwise an error with the failed checks.
func Ready(ctx context.Context, client rest.Interface) error {
	body, err := client.Get().AbsPath("/readyz").DoRaw(ctx)
	if err == nil {
		return nil
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		// "[-]etcd failed: reason withheld"
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %s", ErrNotReady, strings.Join(failed, ", "))
	}
	return err //nolint:wrapcheck // it names the URL
}
