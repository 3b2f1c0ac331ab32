// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/snapshot"
)

// ErrNoData is in the error of a node whose etcd has neither data nor a snapshot.
var ErrNoData = errors.New("etcd has no data and there is no snapshot: an empty etcd would be another cluster; install the node again")

// ErrDamaged is in the error of a node whose snapshot cannot be used.
var ErrDamaged = errors.New("etcd has no data, and its only snapshot is damaged: install the node again")

// Restore restores etcd's data from the snapshot of the bootstrap phase, before the kubelet starts etcd (U-INS-7).
// Existing data is not changed.
func Restore(_ context.Context, root string) error {
	data := filepath.Join(root, node.EtcdData)
	done, err := snapshot.HasMember(data)
	if err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	o := snapshot.Options{Path: filepath.Join(root, node.Snapshot), DataDir: data}
	if !done {
		if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", o.Path, ErrNoData)
		}
		s, err := node.Read(filepath.Join(root, node.BootstrapSettings))
		if err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
		if o.Name, o.PeerURL, err = member(root, s.Name); err != nil {
			return err
		}
	}
	err = snapshot.Restore(o)
	if errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNoSnapshot) {
		// The control plane that could save it again no longer runs.
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err //nolint:wrapcheck // it names the file
}
