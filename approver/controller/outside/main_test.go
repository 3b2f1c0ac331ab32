package outside

import (
	"os"
	"testing"

	"github.com/solonode/sno/patch/patchtest"
)

// shared has no snapshots in its cache, so that a list that goes on after a compaction goes to etcd, as on older releases.
var shared = patchtest.NewShared(patchtest.Options{Flags: map[string]string{"feature-gates": "ListFromCacheSnapshot=false"}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return Main(args, os.Stdout, os.Stderr) })
	os.Exit(shared.Main(m))
}
