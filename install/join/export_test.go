package join

import "context"

// Once approves what can be approved now, and returns what is still missing.
func Once(ctx context.Context, o Options) error {
	known, err := o.inventory()
	if err != nil {
		return err
	}
	return o.once(ctx, known)
}
