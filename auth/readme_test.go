package auth_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/auth"
)

// Every reason is in the README, in the order of severity, and no other.
func TestReadmeReasons(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (True|False) \\|").FindAllSubmatch(readme, -1) {
		got = append(got, string(row[1]))
	}
	want := []string{
		auth.ReasonAsExpected, auth.ReasonNotNeeded, auth.ReasonExternalControlPlane, auth.ReasonOverrideSetByOther, auth.ReasonOptedOut,
		auth.ReasonDryRun, auth.ReasonRollingOut, auth.ReasonWaitingForInfrastructure, auth.ReasonWaitingForNodes, auth.ReasonWaitingForObject,
		auth.ReasonFieldOwnedByOther, auth.ReasonReverted, auth.ReasonForbidden, auth.ReasonRolloutStuck, auth.ReasonInvalid, auth.ReasonApplyFailed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons in README.md (-want +got):\n%s", diff)
	}
}

// The table in README.md is what the functions answer, so that it cannot go stale.
func TestReadmeTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	apart := map[string]string{"": "no", "revision": "per revision", "all": "one per node"}
	row := func(names string, mode configv1.TopologyMode, replicas string) string {
		minimum, err := auth.MinimumControlPlaneNodes(clusterOf(mode, ha), nil)
		if err != nil {
			t.Fatal(err)
		}
		host := hostOf(t, mode, ha, 3)
		s, a := shapeOf(t, shapedServer(t, server(), host), serverLabels), shapeOf(t, shapedAPIServer(t, apiServer(), host), apiServerLabels)
		if replicas == "" {
			replicas = fmt.Sprint(s.Replicas)
		}
		budget := "none"
		if b := must[*policyv1.PodDisruptionBudget](t)(auth.OAuthServerPodDisruptionBudget(host, serverLabels)); b != nil {
			budget = "maxUnavailable " + b.Spec.MaxUnavailable.String()
		}
		return fmt.Sprintf("| %s | %d | %s | %s, %d / %d | %s, %d / %d | %s |", names, minimum.Nodes, replicas,
			apart[s.Apart], s.MaxUnavailable, s.MaxSurge, apart[a.Apart], a.MaxUnavailable, a.MaxSurge, budget)
	}
	for _, line := range []string{
		row("SingleReplica", sr, ""),
		row("DualReplica, HighlyAvailableArbiter", dual, ""),
		row("DualReplica, HighlyAvailableArbiter", arbiter, ""),
		row("HighlyAvailable, empty, unknown", ha, "one per schedulable control-plane node"),
		row("HighlyAvailable, empty, unknown", unknown, "one per schedulable control-plane node"),
	} {
		if !strings.Contains(string(readme), "\n"+line+"\n") {
			t.Errorf("README.md lacks the row\n%s", line)
		}
	}
}
