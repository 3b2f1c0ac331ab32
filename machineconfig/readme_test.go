package machineconfig_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
)

func rows(t *testing.T, pattern string) []string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile(pattern).FindAllSubmatch(readme, -1) {
		got = append(got, string(row[1]))
	}
	return got
}

// Every reason is in the README, in the order of severity, and no other.
func TestReadmeReasons(t *testing.T) {
	want := []string{
		machineconfig.ReasonAsExpected, machineconfig.ReasonNotNeeded, machineconfig.ReasonOptedOut, machineconfig.ReasonDryRun,
		machineconfig.ReasonSettling, machineconfig.ReasonDraining, machineconfig.ReasonRollingOut, machineconfig.ReasonUpdatesPaused,
		machineconfig.ReasonWaitingForInfrastructure, machineconfig.ReasonWaitingForNodes, machineconfig.ReasonWaitingForObject,
		machineconfig.ReasonFieldOwnedByOther, machineconfig.ReasonDrainFailed, machineconfig.ReasonReverted,
		machineconfig.ReasonForbidden, machineconfig.ReasonInvalid, machineconfig.ReasonApplyFailed,
	}
	if diff := cmp.Diff(want, rows(t, "(?m)^\\| `([A-Za-z]+)` \\| (?:True|False) \\|")); diff != "" {
		t.Errorf("reasons in README.md (-want +got):\n%s", diff)
	}
}

// So are the answers of the fit check.
func TestReadmeDoubts(t *testing.T) {
	want := []string{fit.Room, fit.NotRead, fit.Unsettled, fit.NoSuccessor, fit.Volumes, fit.NotFollowed, fit.Budgeted, fit.NoNode, fit.OtherSystem, fit.NoRoom}
	if diff := cmp.Diff(want, rows(t, "(?m)^\\| `([A-Za-z]+)` \\| (?:drained|not drained) \\|")); diff != "" {
		t.Errorf("answers in README.md (-want +got):\n%s", diff)
	}
}
