// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/preflight"
)

// A user's manifest needs a CRD that does not exist in the bootstrap phase.
func ExampleCheck() {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	found := preflight.Check(context.Background(), preflight.Input{
		Created: noon.Add(-time.Hour),
		Now:     func() time.Time { return noon },
		Manifests: []files.File{{Path: "manifests/snapshots.yaml", Content: []byte(
			"apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata: {name: csi}\n")}},
	})
	if err := preflight.Print(os.Stdout, found); err != nil {
		fmt.Println(err)
	}
	fmt.Println(preflight.Failed(found) != nil)
	// Output:
	// STATE   CHECK      FINDING
	// ok      clock      the clock has 2026-11-25T12:00:00Z
	// failed  manifests  manifests/snapshots.yaml: VolumeSnapshotClass csi: a cluster operator installs the CRD volumesnapshotclasses.snapshot.storage.k8s.io, after the restart
	//                      what to do: remove it from the manifests, and apply it when the installation has ended
	// true
}
