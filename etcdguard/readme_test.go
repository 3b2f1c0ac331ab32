package etcdguard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/etcdguard"
)

// The table in README.md is what the functions answer, so that it cannot go stale.
func TestReadmeTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(names string, mode configv1.TopologyMode) string {
		minimum, err := etcdguard.MinimumMembers(clusterOf(mode), nil)
		if err != nil {
			t.Fatal(err)
		}
		guards, may := "none", "no budget"
		if no(etcdguard.Guarded(clusterOf(mode))) {
			who := "member or master"
			if len(no(etcdguard.Nodes(clusterOf(mode), nodesOf(arbiter, 1)))) > 0 {
				who = "member, master or arbiter"
			}
			size, of := no(etcdguard.Size(hostOf(mode, 0))), func(n int) int { return no(etcdguard.Budget(hostOf(mode, n))) }
			guards = fmt.Sprintf("one per %s, at least %d", who, size)
			may = fmt.Sprintf("floor((n-1)/2): %d of 3, %d of 4, %d of 5", of(3), of(4), of(5))
			if size < 3 {
				may = fmt.Sprintf("%d of %d; with more members as above", of(size), size)
			}
		}
		return fmt.Sprintf("| %s | %d | %s | %s |", names, minimum.Members, guards, may)
	}
	for _, line := range []string{
		row("HighlyAvailable, empty, unknown", ha), row("HighlyAvailable, empty, unknown", empty), row("HighlyAvailable, empty, unknown", unknown),
		row("HighlyAvailableArbiter", arbiter), row("DualReplica", dual), row("SingleReplica", sr), row("External", external),
	} {
		if !strings.Contains(string(readme), "\n"+line+"\n") {
			t.Errorf("README.md lacks the row\n%s", line)
		}
	}
}
