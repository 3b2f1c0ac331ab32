package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
)

// ErrNotReady is in the error of Ready for an API server that answers.
var ErrNotReady = errors.New("not ready")

// Ready returns nil if the API server of the client is ready, and else what it waits for.
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
