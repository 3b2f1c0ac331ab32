package ingress_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/ingress"
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
		ingress.ReasonAsExpected, ingress.ReasonNotNeeded, ingress.ReasonExternalControlPlane, ingress.ReasonOptedOut, ingress.ReasonDryRun,
		ingress.ReasonRouterRollingOut, ingress.ReasonWaitingForInfrastructure, ingress.ReasonWaitingForObject, ingress.ReasonFieldOwnedByOther,
		ingress.ReasonReverted, ingress.ReasonForbidden, ingress.ReasonRolloutStuck, ingress.ReasonInvalid, ingress.ReasonApplyFailed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons in README.md (-want +got):\n%s", diff)
	}
}
