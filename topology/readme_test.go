package topology_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// The table in README.md is what Decide answers, so that it cannot go stale.
func TestReadmeTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		number   int
		platform string
		d1w      string
		d2w      string
		workers  int64
	}{
		{1, "None", "0", "0", 0},
		{2, "AWS", "0", "0", 0},
		{3, "None", "1", "any", 1},
		{4, "AWS", "1", "any", 1},
		{5, "None", "2+", "any", 2},
		{6, "AWS", "2+", "any", 2},
		{7, "None", "0", "1+", 0},
		{8, "AWS", "0", "1+", 0},
	} {
		line := fmt.Sprintf("| %d | %s | %s | %s |", row.number, row.platform, row.d1w, row.d2w)
		for _, policy := range topology.Policies() {
			decision, err := topology.Decide(topology.Install{
				Platform: configv1.PlatformType(row.platform), ControlPlane: count(1), Compute: workers(row.workers),
			}, policy)
			if err != nil {
				t.Fatal(err)
			}
			needed := decision.LoadBalancer.Needed
			if row.d2w == "1+" {
				needed = decision.LoadBalancer.NeededWithWorkers
			}
			balancer := "no"
			if needed {
				balancer = "yes"
				if decision.LoadBalancer.Provided {
					balancer = "provided"
				}
			}
			short := "SR"
			if decision.InfrastructureTopology != sr {
				short = "HA"
			}
			line += fmt.Sprintf(" %s, %d on %s, LB %s |", short, decision.IngressReplicas, decision.IngressPool, balancer)
		}
		if !strings.Contains(string(readme), line+"\n") {
			t.Errorf("README.md lacks the line\n%s", line)
		}
	}
}
