// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/solonode/sno/install/bootstrap"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/install/snapshot"
)

// restoreLimit is far more than a snapshot of a few megabytes needs.
const restoreLimit = 10 * time.Minute

func restore(c *cobra.Command, root, status string, out, errs io.Writer) error {
	err := phases(c, status, []phase.Phase{{
		Name: "restore-etcd", Limit: restoreLimit,
		Done: func(context.Context) (bool, error) { return snapshot.HasMember(filepath.Join(root, node.EtcdData)) },
		Run: func(ctx context.Context, _ *phase.Progress) error {
			err := bootstrap.Restore(ctx, root)
			if errors.Is(err, bootstrap.ErrNoData) || errors.Is(err, snapshot.ErrCorrupt) {
				// A retry would not help; a person has to act.
				err = fmt.Errorf("%w; %w", err, phase.ErrInput)
			}
			return err //nolint:wrapcheck // it names the file
		},
	}}, errs)
	if err == nil {
		fmt.Fprintln(out, "etcd has data")
	}
	return err
}
