package checks

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// within looks again and again until done, and says whether it was before the limit. An error that is only the end of the limit is none.
func within(ctx context.Context, every, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
	reached := false
	err := wait.PollUntilContextTimeout(ctx, every, limit, true, func(ctx context.Context) (bool, error) {
		var err error
		reached, err = done(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		return reached, err
	})
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
	}
	return reached, err
}
