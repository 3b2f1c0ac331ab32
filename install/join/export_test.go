// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"time"
)

func Once(ctx context.Context, o Options) error {
	return o.once(ctx, restarted{})
}

func LostAfter(o Options, d time.Duration) Options {
	o.lostAfter = d
	return o
}
