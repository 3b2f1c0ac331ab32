// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"testing"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
)

// TestRights checks that the tool's rights contain its account without a cluster, for make test.
func TestRights(t *testing.T) {
	root, err := programs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := framework.RenderConfig(rightsOf(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" && object.GetName() == toolAccount && object.GetNamespace() == framework.SystemNamespace {
			return
		}
	}
	t.Errorf("no ServiceAccount %s/%s among %d objects", framework.SystemNamespace, toolAccount, len(objects))
}
