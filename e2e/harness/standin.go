// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr/funcr"

	"github.com/solonode/sno/testcluster/fakes/operators"
)

// RunStandIn runs a stand-in operator as the user until it is stopped or the context ends. Its log is next to those of
// the cluster.
func (r *Environment) RunStandIn(ctx context.Context, user string, operator operators.Operator) (*operators.Process, error) {
	config, err := r.Cluster.ConfigForAdministrator(user)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(r.Cluster.Dir(), user+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", user, err)
	}
	context.AfterFunc(ctx, func() { _ = file.Close() })
	log := funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(file, prefix, args) }, funcr.Options{LogTimestamp: true})
	return operators.Start(ctx, config, operator, log), nil
}
