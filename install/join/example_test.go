// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/join"
)

// When the context ends, the error has what is missing.
func ExampleApprove() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	now := func() time.Time { return time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC) }
	err := join.Approve(ctx, join.Options{
		Client: kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://localhost:1"}),
		Root:   "/", Name: "master0", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10")},
		Since: now(), Interval: time.Second, Now: now,
	}, nil)
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}
