package console_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/console"
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
		console.ReasonAsExpected, console.ReasonNotNeeded, console.ReasonOptedOut, console.ReasonDryRun, console.ReasonTakingOver,
		console.ReasonGivingBack, console.ReasonRollingOut, console.ReasonWaitingForInfrastructure, console.ReasonWaitingForObject,
		console.ReasonFieldOwnedByOther, console.ReasonDrainBlocked, console.ReasonReverted, console.ReasonForbidden,
		console.ReasonRolloutStuck, console.ReasonInvalid, console.ReasonApplyFailed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons in README.md (-want +got):\n%s", diff)
	}
}
