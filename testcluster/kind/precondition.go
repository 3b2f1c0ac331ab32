// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/solonode/sno/testcluster/engine"
)

var (
	// ErrConfig is returned for an invalid configuration.
	ErrConfig = errors.New("invalid cluster configuration")
	// ErrAlreadyExists is returned when a cluster of the same name exists.
	ErrAlreadyExists = errors.New("the cluster exists already")
)

const clusterLabel = "io.x-k8s.kind.cluster"

// leftover returns an error if there are containers of a cluster of that name.
func (c Config) leftover(ctx context.Context, e engine.Engine) error {
	out, err := e.Output(ctx, "ps", "--all", "--filter", "label="+clusterLabel+"="+c.Name, "--format", "{{.Names}}")
	if containers := strings.Fields(out); len(containers) > 0 {
		err = fmt.Errorf("%w: %s, with the containers %s: remove it with `make kind-delete NAME=%s`, or choose another -name",
			ErrAlreadyExists, c.Name, strings.Join(containers, ", "), c.Name)
	}
	return err
}
